/** The firewall of a server in OVN: pure. It is a group of the server's ports, and as few rules of the group as have
 *  the same effect. The cost of a row in OVN hardly depends on its length, so consecutive rules of one direction with
 *  the same action become one row. OVN passes the packets of a connection for as long as the rules pass the packet that
 *  opened it, so that a change applies to open connections too. By itself OVN passes neighbour discovery, router
 *  advertisements, and errors that belong to a connection. */
import {
  type Firewall,
  FIREWALL_DIRECTIONS,
  type FirewallAction,
  type FirewallDirection,
  type FirewallRule,
} from '../../../domain/server/firewall.ts'
import { METADATA_ADDRESS } from '../../../domain/network/metadata-service.ts'
import { ACL_DIRECTIONS, guestPort } from './names.ts'
import { refer, type Row, type RowRef } from './row.ts'

export interface FirewallFacts extends Firewall {
  /** Ports of the server, public and private, by their names on its host. */
  readonly ports: readonly string[]
}

/** Below the rules that protect the networks themselves. */
const FIXED_PRIORITY = 30_000
const RULES_PRIORITY = 20_000
const DEFAULT_PRIORITY = 1_000

const ACTIONS: Readonly<Record<FirewallAction, string>> = { accept: 'allow-related', drop: 'drop' }

/** Traffic that a server needs, whatever its rules say. */
const TOO_BIG: readonly string[] = ['icmp6.type == 2', 'icmp4.type == 3 && icmp4.code == 4']
const ALWAYS: Readonly<Record<FirewallDirection, readonly string[]>> = {
  in: ['udp.src == 67 && udp.dst == 68', 'udp.src == 547 && udp.dst == 546', ...TOO_BIG],
  out: [
    'udp.src == 68 && udp.dst == 67',
    'udp.src == 546 && udp.dst == 547',
    `ip4.dst == ${METADATA_ADDRESS}`,
    ...TOO_BIG,
  ],
}

/** None when the firewall is off: everything passes. */
export function firewallRows(serverUid: string, facts: FirewallFacts): readonly Row[] {
  if (!facts.enabled) return []
  const name = `firewall_${serverUid.replaceAll('-', '_')}`
  const group: RowRef = { table: 'Port_Group', key: name }
  const defaults = { in: facts.defaultInbound, out: facts.defaultOutbound }
  const rule = (
    key: string,
    direction: FirewallDirection,
    { priority, matches, action }: { readonly priority: number } & Run,
  ): Row => ({
    table: 'ACL',
    key: `${name}-${direction}-${key}`,
    parent: { ...group, column: 'acls' },
    columns: {
      direction: ACL_DIRECTIONS[direction],
      priority,
      // Address resolution (ARP) is not IP: no rule applies to it.
      match: `${direction === 'in' ? 'outport' : 'inport'} == @${name} && ip && (${anyOf(matches)})`,
      action: ACTIONS[action],
    },
  })
  return [
    { ...group, columns: { name, ports: refer(...facts.ports.map(guestPort)) } },
    ...FIREWALL_DIRECTIONS.flatMap((direction) => [
      rule('always', direction, { priority: FIXED_PRIORITY, matches: ALWAYS[direction], action: 'accept' }),
      ...runsOf(facts.rules.filter((one) => one.direction === direction)).map((run, index) =>
        rule(`rule-${index}`, direction, { priority: RULES_PRIORITY - index, ...run }),
      ),
      rule('default', direction, { priority: DEFAULT_PRIORITY, matches: ['1'], action: defaults[direction] }),
    ]),
  ]
}

/** Consecutive rules with the same action: their order has no effect. */
interface Run {
  readonly action: FirewallAction
  readonly matches: readonly string[]
}

function runsOf(rules: readonly FirewallRule[]): readonly Run[] {
  const runs: { readonly action: FirewallAction; readonly matches: string[] }[] = []
  for (const rule of rules) {
    const last = runs.at(-1)
    if (last?.action === rule.action) last.matches.push(matchOf(rule))
    else runs.push({ action: rule.action, matches: [matchOf(rule)] })
  }
  return runs
}

const anyOf = (matches: readonly string[]): string => {
  const [first = '1', ...others] = new Set(matches.includes('1') ? ['1'] : matches)
  return others.length === 0 ? first : [first, ...others].map((match) => `(${match})`).join(' || ')
}

const FAMILIES = { ipv4: ['ip4'], ipv6: ['ip6'], any: [] } as const

/** The OVN match expression of the rule. */
function matchOf({ action, direction, family, protocol, portStart, portEnd, remoteCidrs }: FirewallRule): string {
  const side = direction === 'in' ? 'src' : 'dst'
  const remotes = (['ip4', 'ip6'] as const).flatMap((ip) => {
    const cidrs = remoteCidrs.filter((cidr) => cidr.includes(':') === (ip === 'ip6'))
    // A range that covers everything makes the others unnecessary.
    if (cidrs.some((cidr) => cidr.endsWith('/0'))) return [ip]
    return cidrs.length === 0 ? [] : [`${ip}.${side} == {${cidrs.join(', ')}}`]
  })
  const terms = [
    ...FAMILIES[family],
    ...(protocol === 'any' ? [] : [partsOf(action, protocol, portStart, portEnd)]),
    ...(remotes.length === 0 ? [] : [`(${remotes.join(' || ')})`]),
  ]
  return terms.length === 0 ? '1' : terms.join(' && ')
}

/** Fragments after the first have no ports and, with IPv6, no protocol either. They pass where some traffic to those
 *  ports may pass: without the first fragment a receiver cannot use them, and without them it cannot use the first. */
function partsOf(
  action: FirewallAction,
  protocol: Exclude<FirewallRule['protocol'], 'any'>,
  portStart: number | undefined,
  portEnd = portStart,
): string {
  const ports = portStart === undefined ? undefined : `${protocol}.dst >= ${portStart} && ${protocol}.dst <= ${portEnd}`
  const whole = ports === undefined ? protocol : `${protocol} && ${ports}`
  if (action === 'drop') return whole
  const later = [...(ports === undefined ? [] : [`(${protocol} && ip.later_frag)`]), '(ip6 && ip.later_frag)']
  return `((${whole}) || ${later.join(' || ')})`
}
