/** Which of two machines has the addresses that they share, as keepalived's configuration file. Pure. */
import { parseAddress } from '../network/addresses.ts'

export interface AddressSharing {
  /** Of the interface that carries the heartbeat. */
  readonly heartbeat: { readonly interface: string; readonly ownAddress: string; readonly peerAddress: string }
  /** 1 to 255, the same on both machines. */
  readonly routerId: number
  /** 1 to 254; the other machine has another one. */
  readonly priority: number
  /** With the interface that each goes to; at least one of them IPv4. */
  readonly shared: readonly { readonly address: string; readonly prefix: number; readonly interface: string }[]
  /** Where answers of a shared public address leave; none without such an address. */
  readonly publicRoute?: { readonly address: string; readonly gateway: string; readonly interface: string } | undefined
  /** Absolute path of a file that has the number 0 while this machine can serve; it is followed as it is written. */
  readonly faultFile: string
}

/** Three of them are missed, and a bit more, before the other machine takes over: within a second. */
const ADVERTISEMENT_SECONDS = 0.25

/** The whole file, with a line end after each line. A machine that returns stands by: it does not take the addresses
 *  back. One that cannot serve falls silent at once, whatever its priority. Advertisements go to the other machine
 *  alone, by IPv4, so that nobody else in the network hears them. */
export function keepalivedConfiguration(sharing: AddressSharing): string {
  const { heartbeat, routerId, priority, shared, publicRoute, faultFile } = sharing
  return [
    'global_defs {',
    '  vrrp_version 3',
    '  vrrp_garp_master_repeat 3',
    '  vrrp_garp_master_refresh 10',
    // The other machine takes over when it is silent for long, also because the proxy has all processors.
    '  vrrp_rt_priority 20',
    // What it may compute between two waits, in microseconds. The 10,000 that it has by itself are less than an
    // emulated machine needs for its first words: it would be killed again and again, and the addresses be nobody's.
    '  vrrp_rlimit_rttime 2000000',
    '}',
    '',
    'track_file cannot_serve {',
    `  file "${faultFile}"`,
    '  weight 0',
    '  init_file 1',
    '}',
    '',
    'vrrp_instance shared {',
    '  state BACKUP',
    '  nopreempt',
    `  interface ${heartbeat.interface}`,
    `  virtual_router_id ${routerId}`,
    `  priority ${priority}`,
    `  advert_int ${ADVERTISEMENT_SECONDS}`,
    `  unicast_src_ip ${heartbeat.ownAddress}`,
    '  unicast_peer {',
    `    ${heartbeat.peerAddress}`,
    '  }',
    ...addressBlock(
      'virtual_ipaddress',
      shared.filter(({ address }) => !isIpv6(address)),
    ),
    ...addressBlock(
      'virtual_ipaddress_excluded',
      shared.filter(({ address }) => isIpv6(address)),
    ),
    ...(publicRoute === undefined ? [] : routeBlock(publicRoute)),
    '  track_file {',
    '    cannot_serve',
    '  }',
    '}',
    '',
  ].join('\n')
}

/** Of a table of its own: what answers from the network goes the other way. */
const PUBLIC_TABLE = 100
const routeBlock = (route: NonNullable<AddressSharing['publicRoute']>): readonly string[] => [
  '  virtual_routes {',
  `    0.0.0.0/0 via ${route.gateway} dev ${route.interface} table ${PUBLIC_TABLE}`,
  '  }',
  '  virtual_rules {',
  `    from ${route.address}/32 table ${PUBLIC_TABLE} priority ${PUBLIC_TABLE}`,
  '  }',
]

const isIpv6 = (address: string): boolean => parseAddress(address)?.family === 'ipv6'

/** Advertisements speak of IPv4; addresses of IPv6 go along, and are no source of the machine's own connections. */
function addressBlock(name: string, shared: AddressSharing['shared']): readonly string[] {
  const lines = shared.map(({ address, prefix, interface: device }) => {
    const lifetime = isIpv6(address) ? ' preferred_lft 0' : ''
    return `    ${address}/${prefix} dev ${device}${lifetime}`
  })
  return lines.length === 0 ? [] : [`  ${name} {`, ...lines, '  }']
}
