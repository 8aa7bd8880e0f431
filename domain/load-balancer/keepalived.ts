/** Decides which of two machines has the addresses that they share, as keepalived's configuration file. Pure. */
import { parseAddress } from '../network/addresses.ts'

export interface AddressSharing {
  /** Of the interface that carries the heartbeat. */
  readonly heartbeat: { readonly interface: string; readonly ownAddress: string; readonly peerAddress: string }
  /** 1 to 255, the same on both machines. */
  readonly routerId: number
  /** 1 to 254; the other machine has another one. */
  readonly priority: number
  /** With the interface of each; at least one of them is IPv4. */
  readonly shared: readonly { readonly address: string; readonly prefix: number; readonly interface: string }[]
  /** The route for answers of a shared public address; none without such an address. */
  readonly publicRoute?: { readonly address: string; readonly gateway: string; readonly interface: string } | undefined
  /** Absolute path of a file that contains 0 while this machine can serve; keepalived watches it for writes. */
  readonly faultFile: string
}

/** The other machine takes over after a bit more than three missed advertisements: within a second. */
const ADVERTISEMENT_SECONDS = 0.25

/** The complete file, with a line end after each line. A machine that returns stays in standby: it does not take the
 *  addresses back. One that cannot serve stops advertising at once, regardless of its priority. Advertisements go to
 *  the other machine alone, by IPv4, so that nobody else in the network receives them. */
export function keepalivedConfiguration(sharing: AddressSharing): string {
  const { heartbeat, routerId, priority, shared, publicRoute, faultFile } = sharing
  return [
    'global_defs {',
    '  vrrp_version 3',
    '  vrrp_garp_master_repeat 3',
    '  vrrp_garp_master_refresh 10',
    // If this machine is silent for long, the other one takes over, even when only the proxy keeps the processors busy.
    '  vrrp_rt_priority 20',
    // How long it may compute between two waits, in microseconds. The default of 10,000 is too short for an emulated
    // machine at startup: it would be killed again and again, and no machine would have the addresses.
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

/** A separate routing table: answers from the network take another route. */
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

/** Advertisements carry IPv4 addresses; IPv6 addresses follow them, and are never a source of the machine's own
 *  connections. */
function addressBlock(name: string, shared: AddressSharing['shared']): readonly string[] {
  const lines = shared.map(({ address, prefix, interface: device }) => {
    const lifetime = isIpv6(address) ? ' preferred_lft 0' : ''
    return `    ${address}/${prefix} dev ${device}${lifetime}`
  })
  return lines.length === 0 ? [] : [`  ${name} {`, ...lines, '  }']
}
