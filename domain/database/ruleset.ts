/** Who may connect to the machine of a database, as a ruleset of nftables: its network, to PostgreSQL, and nobody else.
 *  PostgreSQL refuses others as well, but only after it has talked to them. Pure. */
import { parseNetwork } from '../network/addresses.ts'
import { DATABASE_PORT } from './rules.ts'
import { CLOSED_INPUT, NFTABLES_FAMILIES } from '../managed-machine/ruleset.ts'

/** The complete file, with a line end after each line. `networks` are the ranges of the network of the database. */
export function databaseRuleset(networks: readonly string[]): string {
  return [
    'table inet svccloud {',
    ...CLOSED_INPUT,
    ...networks.map((network) => {
      const family = NFTABLES_FAMILIES[parseNetwork(network)?.family ?? 'ipv4']
      return `    ${family} saddr ${network} tcp dport ${DATABASE_PORT} accept`
    }),
    '  }',
    '  chain forward {',
    '    type filter hook forward priority filter; policy drop;',
    '  }',
    '}',
    '',
  ].join('\n')
}
