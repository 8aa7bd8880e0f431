/** Public addresses that are in use now, from OVN's northbound database: those of servers' ports, and those that
 *  routers and load balancers translate. Pure: parses the output of `ovsdb-client monitor --format=json`. */
import { SERVERS } from './address-plan.ts'

/** Tables and their columns with addresses. A port may also have addresses that it shares with another port. */
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
  /** Handles a line of output. */
  take(line: string): void
  /** Forgets everything, because the program starts again. */
  clear(): void
  addresses(): ReadonlySet<string>
}

export function openAddressTable(): AddressTable {
  const byRow = new Map<string, readonly string[]>()
  return {
    take(line) {
      const { data } = JSON.parse(line) as Update // the program's own format
      let changed = ''
      // A change consists of the old row with its id and the new one without; complete new rows have the action
      // `insert`.
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
