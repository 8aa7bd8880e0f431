/** What a firewall does with a packet that belongs to no connection yet: pure. What hosts do is compared with it. */
import { contains, parseAddress, parseNetwork } from '../../domain/network/addresses.ts'
import type {
  Firewall,
  FirewallAction,
  FirewallDirection,
  FirewallProtocol,
  FirewallRule,
} from '../../domain/server/firewall.ts'

/** The first packet of a flow, seen from the server. */
export interface Flow {
  readonly direction: FirewallDirection
  readonly protocol: Exclude<FirewallProtocol, 'any'>
  /** Of the other end. */
  readonly remote: string
  /** Where it goes to; absent for icmp. */
  readonly port?: number | undefined
}

export function judge({ enabled, rules, defaultInbound, defaultOutbound }: Firewall, flow: Flow): FirewallAction {
  if (!enabled) return 'accept'
  const deciding = rules.find((rule) => isFor(rule, flow))
  return deciding?.action ?? (flow.direction === 'in' ? defaultInbound : defaultOutbound)
}

function isFor(rule: FirewallRule, { direction, protocol, remote, port }: Flow): boolean {
  const address = parseAddress(remote)
  if (address === undefined || rule.direction !== direction) return false
  if (rule.family !== 'any' && rule.family !== address.family) return false
  if (rule.protocol !== 'any' && rule.protocol !== protocol) return false
  const { portStart, portEnd = portStart, remoteCidrs } = rule
  if (portStart !== undefined && portEnd !== undefined && (port === undefined || port < portStart || port > portEnd))
    return false
  return (
    remoteCidrs.length === 0 ||
    remoteCidrs.some((cidr) => {
      const network = parseNetwork(cidr)
      return network?.family === address.family && contains(network, address.value)
    })
  )
}
