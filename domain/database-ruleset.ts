/** Who comes in to the machine of a database, as a ruleset of nftables: its network, to PostgreSQL, and nobody else.
 *  PostgreSQL refuses others as well, but only once it has spoken to them. Pure. */
import { parseNetwork } from './addresses.ts'
import { DATABASE_PORT } from './database.ts'

/** The whole file, with a line end after each line. `networks` are the ranges of the network of the database. */
export function databaseRuleset(networks: readonly string[]): string {
  const families = { ipv4: 'ip', ipv6: 'ip6' } as const
  return [
    'table inet svccloud {',
    '  chain input {',
    '    type filter hook input priority filter; policy drop;',
    '    iif "lo" accept',
    '    ct state vmap { established : accept, related : accept, invalid : drop }',
    '    meta l4proto { icmp, ipv6-icmp } accept',
    // Answers of DHCP begin no connection that is known.
    '    udp dport { 68, 546 } accept',
    ...networks.map(
      (network) =>
        `    ${families[parseNetwork(network)?.family ?? 'ipv4']} saddr ${network} tcp dport ${DATABASE_PORT} accept`,
    ),
    '  }',
    '  chain forward {',
    '    type filter hook forward priority filter; policy drop;',
    '  }',
    '}',
    '',
  ].join('\n')
}
