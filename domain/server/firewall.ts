/** The firewall of a server: its rules, their faults, and the one form in which they are stored. Pure.
 *
 *  Rules are tried in order; the first that matches a packet decides, or the default of its direction when none does.
 *  It is stateful: packets of an admitted connection pass in both directions. Traffic that `ALWAYS_ALLOWED` names
 *  passes regardless of the rules. */
import { createHash } from 'node:crypto'
import { type AddressFamily, formatNetwork, type Network, parseNetwork } from '../network/addresses.ts'

export const FIREWALL_DIRECTIONS = ['in', 'out'] as const
export type FirewallDirection = (typeof FIREWALL_DIRECTIONS)[number]
export const FIREWALL_ACTIONS = ['accept', 'drop'] as const
export type FirewallAction = (typeof FIREWALL_ACTIONS)[number]
export const FIREWALL_FAMILIES = ['ipv4', 'ipv6', 'any'] as const
export const FIREWALL_PROTOCOLS = ['tcp', 'udp', 'icmp', 'any'] as const
export type FirewallProtocol = (typeof FIREWALL_PROTOCOLS)[number]

export const FIREWALL_RULES_MAXIMUM = 100
export const FIREWALL_CIDRS_PER_RULE_MAXIMUM = 100
/** Over all rules: each is an address to be matched on the server's host. */
export const FIREWALL_CIDRS_MAXIMUM = 1_000
export const FIREWALL_COMMENT_CHARACTERS_MAXIMUM = 255
export const PORT_MAXIMUM = 65_535

export interface FirewallRule {
  readonly direction: FirewallDirection
  readonly action: FirewallAction
  readonly family: AddressFamily | 'any'
  /** `icmp` means that of the packet's family. */
  readonly protocol: FirewallProtocol
  /** The destination ports; both absent: every port. */
  readonly portStart?: number | undefined
  readonly portEnd?: number | undefined
  /** Sources or destinations of packets; empty: any. Networks of one family only: the rule is for that family. */
  readonly remoteCidrs: readonly string[]
  readonly comment: string
}

export interface Firewall {
  /** Whether the firewall is enabled; everything passes while it is false. */
  readonly enabled: boolean
  readonly defaultInbound: FirewallAction
  readonly defaultOutbound: FirewallAction
  readonly rules: readonly FirewallRule[]
}

/** The firewall of a server that was never given one. */
export const NO_FIREWALL: Firewall = { enabled: false, defaultInbound: 'drop', defaultOutbound: 'accept', rules: [] }

/** What passes every firewall, for people. Without these a server has no address, no neighbours and no metadata. */
export const ALWAYS_ALLOWED = [
  'established and related traffic',
  'neighbour discovery',
  'router advertisements',
  'Packet Too Big',
  'the DHCP client',
  'the metadata address',
] as const

export interface FirewallFault {
  /** Path in the firewall, in the words of the stored shape, as in `rules.3.portEnd`. */
  readonly field: string
  /** Completes the name of the field. */
  readonly detail: string
}

/** All faults of the firewall, in its order; none when it can be applied. */
export function firewallFaults({ rules }: Pick<Firewall, 'rules'>): readonly FirewallFault[] {
  const cidrs = rules.reduce((sum, { remoteCidrs }) => sum + remoteCidrs.length, 0)
  return [
    ...(rules.length > FIREWALL_RULES_MAXIMUM
      ? [{ field: 'rules', detail: `must be at most ${FIREWALL_RULES_MAXIMUM}` }]
      : []),
    ...(cidrs > FIREWALL_CIDRS_MAXIMUM
      ? [{ field: 'rules', detail: `must name at most ${FIREWALL_CIDRS_MAXIMUM} networks together` }]
      : []),
    ...rules.flatMap((rule, index) =>
      ruleFaults(rule).map(({ field, detail }) => ({ field: `rules.${index}.${field}`, detail })),
    ),
  ]
}

function ruleFaults(rule: FirewallRule): readonly FirewallFault[] {
  const { family, remoteCidrs, comment } = rule
  return [
    ...portFaults(rule),
    ...(remoteCidrs.length > FIREWALL_CIDRS_PER_RULE_MAXIMUM
      ? [{ field: 'remoteCidrs', detail: `must be at most ${FIREWALL_CIDRS_PER_RULE_MAXIMUM}` }]
      : []),
    ...remoteCidrs.flatMap((cidr, index) => {
      const detail = cidrFault(cidr, family)
      return detail === undefined ? [] : [{ field: `remoteCidrs.${index}`, detail }]
    }),
    ...([...comment].length > FIREWALL_COMMENT_CHARACTERS_MAXIMUM
      ? [{ field: 'comment', detail: `must have at most ${FIREWALL_COMMENT_CHARACTERS_MAXIMUM} characters` }]
      : []),
  ]
}

function portFaults({ protocol, portStart, portEnd }: FirewallRule): readonly FirewallFault[] {
  const ports = [
    ...(portStart === undefined ? [] : [{ field: 'portStart', port: portStart }]),
    ...(portEnd === undefined ? [] : [{ field: 'portEnd', port: portEnd }]),
  ]
  if (ports[0] !== undefined && protocol !== 'tcp' && protocol !== 'udp')
    return [{ field: ports[0].field, detail: 'is for rules of protocol tcp or udp only' }]
  const outside = ports
    .filter(({ port }) => !Number.isInteger(port) || port < 1 || port > PORT_MAXIMUM)
    .map(({ field }) => ({ field, detail: `must be a port of 1 to ${PORT_MAXIMUM}` }))
  if (outside.length > 0) return outside
  if (portStart === undefined && portEnd !== undefined)
    return [{ field: 'portStart', detail: 'must be given where the last port is' }]
  return portStart !== undefined && portEnd !== undefined && portEnd < portStart
    ? [{ field: 'portEnd', detail: `must be ${portStart} or higher: it is the last port` }]
    : []
}

const BITS = { ipv4: 32, ipv6: 128 } as const
const FAMILY_NAMES = { ipv4: 'IPv4', ipv6: 'IPv6' } as const

/** The network of the text; a single address becomes a network of one address. */
const networkOf = (text: string): Network | undefined =>
  parseNetwork(text.includes('/') ? text : `${text}/${text.includes(':') ? BITS.ipv6 : BITS.ipv4}`)

function cidrFault(text: string, family: FirewallRule['family']): string | undefined {
  const network = networkOf(text)
  if (network === undefined) return 'must be a network whose address has no bits beyond its prefix, as 192.0.2.0/24'
  return family === 'any' || network.family === family
    ? undefined
    : `must be an ${FAMILY_NAMES[family]} network, which the rule is for`
}

/** The firewall in the form in which it is stored, returned and applied: networks in canonical form, each once, and a
 *  single port as a range of one. The firewall must be valid. */
export const canonicalFirewall = (firewall: Firewall): Firewall => ({
  enabled: firewall.enabled,
  defaultInbound: firewall.defaultInbound,
  defaultOutbound: firewall.defaultOutbound,
  rules: firewall.rules.map(({ direction, action, family, protocol, portStart, portEnd, remoteCidrs, comment }) => ({
    direction,
    action,
    family,
    protocol,
    ...(portStart === undefined ? {} : { portStart, portEnd: portEnd ?? portStart }),
    remoteCidrs: [...new Set(remoteCidrs.map(canonicalRemote))],
    comment,
  })),
})

function canonicalRemote(text: string): string {
  const network = networkOf(text)
  return network === undefined ? text : formatNetwork(network)
}

/** Identifies firewalls: two that filter alike have the same fingerprint. */
export const firewallFingerprint = (firewall: Firewall): string =>
  createHash('sha256')
    .update(JSON.stringify(canonicalFirewall(firewall)))
    .digest('base64url')
