/** Which public addresses lead somewhere now, as OVN's northbound database has them: of the servers' ports, and of what
 *  routers and load balancers translate. Pure: reads what `ovsdb-client monitor --format=json` prints. */
import { SERVERS } from './address-plan.ts'

/** Tables and the column of each that holds addresses. A port may speak for those that it shares with another port,
 *  too. */
export const ADDRESS_COLUMNS = [
  ['Logical_Switch_Port', 'port_security'],
  ['NAT', 'external_ip'],
  ['Load_Balancer', 'vips'],
] as const

interface Update {
  readonly data: readonly (readonly unknown[])[]
}

const PREFIX = SERVERS.ipv4.split('.').slice(0, 2).join('.')
const ADDRESS = new RegExp(String.raw`\b${PREFIX.replace('.', String.raw`\.`)}\.\d{1,3}\.\d{1,3}\b`, 'g')

export interface AddressTable {
  /** A line that was printed. */
  take(line: string): void
  /** Nothing is known any longer: what prints begins anew. */
  clear(): void
  addresses(): ReadonlySet<string>
}

export function openAddressTable(): AddressTable {
  const byRow = new Map<string, readonly string[]>()
  return {
    take(line) {
      const { data } = JSON.parse(line) as Update // the program's own format
      let changed = ''
      // A change is the old row with its id and the new one without; new rows that are whole come as `insert`.
      for (const [id, action, value] of data) {
        if (typeof id === 'string' && id !== '') changed = id
        if (action === 'delete') byRow.delete(changed)
        else if (action !== 'old') byRow.set(changed, JSON.stringify(value ?? '').match(ADDRESS) ?? [])
      }
    },
    clear: () => byRow.clear(),
    addresses: () => new Set([...byRow.values()].flat()),
  }
}
