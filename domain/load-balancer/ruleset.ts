/** Which outside traffic may reach a load balancer's machine, as a ruleset of nftables. Pure. Its frontends listen on
 *  all of its addresses, and every machine also has separate public addresses: new connections are accepted only to the
 *  public addresses of the balancer. No connection is tracked, so it costs almost nothing. */
import { parseAddress } from '../network/addresses.ts'
import { NFTABLES_FAMILIES } from '../managed-machine/ruleset.ts'

export interface BalancerEntrance {
  /** Of the public network. */
  readonly interface: string
  /** Public ones, of the balancer. */
  readonly addresses: readonly string[]
}

/** The complete file, with a line end after each line. */
export function balancerRuleset({ interface: device, addresses }: BalancerEntrance): string {
  return [
    'table inet svccloud {',
    '  chain input {',
    '    type filter hook input priority filter; policy accept;',
    `    iifname "${device}" tcp flags & (syn | ack) == syn jump begun`,
    '  }',
    '  chain begun {',
    ...addresses.map(
      (address) => `    ${NFTABLES_FAMILIES[parseAddress(address)?.family ?? 'ipv4']} daddr ${address} accept`,
    ),
    '    drop',
    '  }',
    '}',
    '',
  ].join('\n')
}
