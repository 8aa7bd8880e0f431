/** An interface of a guest in a private network in OVN: pure. A port from which the guest can use only its own
 *  addresses and those of the networks behind it, and its name for other guests. */
import { linkLocalOf, guestPort, networkSwitch, chassisOptions } from './names.ts'
import { dhcpOf, PRIVATE_DOMAIN } from './private-network.ts'
import { refer, type Row } from './row.ts'

export interface InterfaceFacts {
  readonly zone: string
  /** The name of the port, on its host too. */
  readonly id: string
  readonly networkId: string
  readonly macAddress: string
  readonly ipv4: string
  readonly ipv6: string
  /** Networks behind the guest, to which a router of its account routes through it: it uses their addresses too. */
  readonly routed?: readonly string[] | undefined
  /** Addresses that the guest shares with other machines of its owner, one machine at a time. */
  readonly shared?: readonly string[] | undefined
  readonly hostname: string
  /** The node that runs the guest and, during a migration, the target node. */
  readonly nodes: readonly string[]
}

export function interfaceRows(facts: InterfaceFacts): readonly Row[] {
  const { id, networkId, macAddress, ipv4, ipv6, routed = [], shared = [], nodes } = facts
  const own = [macAddress, ipv4, linkLocalOf(macAddress), ipv6]
  return [
    {
      ...guestPort(id),
      parent: { ...networkSwitch(networkId), column: 'ports' },
      columns: {
        name: id,
        type: '',
        addresses: [own.join(' ')],
        port_security: [[...own, ...shared, ...routed].join(' ')],
        options: chassisOptions(nodes),
        dhcpv4_options: refer(dhcpOf(networkId, 'ipv4')),
        dhcpv6_options: refer(dhcpOf(networkId, 'ipv6')),
      },
    },
    {
      table: 'DNS',
      key: `interface-${id}`,
      parent: { ...networkSwitch(networkId), column: 'dns_records' },
      columns: { records: namesOf(facts) },
    },
  ]
}

function namesOf({ hostname, ipv4, ipv6 }: InterfaceFacts): Readonly<Record<string, string>> {
  const name = hostname.toLowerCase()
  const reverse = `${ipv4.split('.').toReversed().join('.')}.in-addr.arpa`
  return {
    [name]: `${ipv4} ${ipv6}`,
    [`${name}.${PRIVATE_DOMAIN}`]: `${ipv4} ${ipv6}`,
    [reverse]: `${name}.${PRIVATE_DOMAIN}`,
  }
}
