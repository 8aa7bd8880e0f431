/** What a firewall does with the connection of the person who edits it, and the moves of rules in their order. Pure. */
import type { Firewall, FirewallRule } from '../../../client/schema.ts'
import { contains, parseAddress, parseNetwork } from '../../../domain/network/addresses.ts'

export type Draft = Pick<Firewall, 'enabled' | 'default_inbound' | 'default_outbound' | 'rules'>

export const draftOf = ({ enabled, default_inbound, default_outbound, rules }: Draft): Draft => ({
  enabled,
  default_inbound,
  default_outbound,
  rules,
})

/** Whether two firewalls let the same through, rule by rule. */
export const isSameDraft = (one: Draft, other: Draft): boolean =>
  JSON.stringify(draftOf(one)) === JSON.stringify(draftOf(other))

const SSH_PORT = 22

export const NEW_RULE: FirewallRule = {
  direction: 'in',
  action: 'accept',
  family: 'any',
  protocol: 'tcp',
  port_start: null,
  port_end: null,
  remote_cidrs: [],
  comment: '',
}

const isFrom = (cidrs: readonly string[], address: string): boolean => {
  const parsed = parseAddress(address)
  if (cidrs.length === 0) return true
  if (parsed === undefined) return false
  return cidrs.some((cidr) => {
    const network = parseNetwork(cidr)
    return network !== undefined && network.family === parsed.family && contains(network, parsed.value)
  })
}

const isOfFamily = (family: FirewallRule['family'], address: string): boolean =>
  family === 'any' || family === (address.includes(':') ? 'ipv6' : 'ipv4')

/** Whether a new TCP connection from the address to the port is accepted: the first rule that fits decides. */
export function lets(draft: Draft, address: string, port: number): boolean {
  if (!draft.enabled) return true
  const rule = draft.rules.find(
    ({ direction, protocol, family, port_start: start, port_end: end, remote_cidrs: cidrs }) =>
      direction === 'in' &&
      (protocol === 'any' || protocol === 'tcp') &&
      isOfFamily(family, address) &&
      (start === null || (port >= start && port <= (end ?? start))) &&
      isFrom(cidrs, address),
  )
  return (rule?.action ?? draft.default_inbound) === 'accept'
}

/** Whether SSH from the address works before the change and not after it: it ends open connections too. */
export const cutsSsh = (before: Draft, after: Draft, address: string): boolean =>
  lets(before, address, SSH_PORT) && !lets(after, address, SSH_PORT)

/** The list with the item one place up (-1) or down (1); the same list at its ends. */
export function moved<Item>(items: readonly Item[], at: number, by: -1 | 1): readonly Item[] {
  const item = items[at]
  const other = items[at + by]
  if (item === undefined || other === undefined) return items
  return items.map((each, index) => (index === at ? other : index === at + by ? item : each))
}

/** The address as a range of one. */
export const rangeOf = (address: string): string => `${address}/${address.includes(':') ? '128' : '32'}`

/** Rules that people begin with. */
export const TEMPLATES = {
  ssh: (address: string): readonly FirewallRule[] => [
    { ...NEW_RULE, port_start: SSH_PORT, remote_cidrs: address === '' ? [] : [rangeOf(address)], comment: 'ssh' },
  ],
  web: (): readonly FirewallRule[] => [
    { ...NEW_RULE, port_start: 80, comment: 'http' },
    { ...NEW_RULE, port_start: 443, comment: 'https' },
  ],
  ping: (): readonly FirewallRule[] => [{ ...NEW_RULE, protocol: 'icmp', comment: 'ping' }],
} as const
export type TemplateName = keyof typeof TEMPLATES

/** `80`, `8000-8080` or empty as a range of ports; undefined when it is none. */
export function portsOf(text: string): Pick<FirewallRule, 'port_start' | 'port_end'> | undefined {
  if (text.trim() === '') return { port_start: null, port_end: null }
  const [, start, end] = /^\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?$/.exec(text) ?? []
  if (start === undefined) return undefined
  return { port_start: Number(start), port_end: end === undefined ? null : Number(end) }
}

export const portsText = ({ port_start: start, port_end: end }: FirewallRule): string =>
  start === null ? '' : end === null || end === start ? String(start) : `${String(start)}-${String(end)}`
