/** What comes to a load balancer's machine from outside, as a ruleset of nftables. Pure. Its frontends listen on all of
 *  its addresses, and every machine has some of its own outside: connections are begun to those that the balancer has
 *  there only. Nothing is kept of connections, so that it costs as good as nothing. */
import { parseAddress } from '../network/addresses.ts'
import { NFTABLES_FAMILIES } from '../managed-machine/ruleset.ts'

export interface BalancerEntrance {
  /** Of the public network. */
  readonly interface: string
  /** Public ones, of the balancer. */
  readonly addresses: readonly string[]
}

/** The whole file, with a line end after each line. */
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
