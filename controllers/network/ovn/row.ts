/** Desired rows of OVN's northbound database: pure. A table and a key identify a row, and its id in the database is
 *  derived from both: a reference needs no lookup, and two writers of the same row cannot create it twice. */
import { createHash } from 'node:crypto'

export interface RowRef {
  readonly table: Table
  /** Unique among the rows of the table in the zone. */
  readonly key: string
}

/** A desired row. Only the listed columns are written; others are left as they are. Lists are sets; objects are
 *  maps. */
export interface Row extends RowRef {
  readonly columns: Readonly<Record<string, Value>>
  /** The row that holds it, and in which column; it may belong to another owner. */
  readonly parent?: RowRef & { readonly column: string }
}

export type Value =
  | string
  | number
  | boolean
  | readonly string[]
  | Readonly<Record<string, string>>
  | { readonly references: readonly RowRef[] }

export const refer = (...references: readonly RowRef[]): Value => ({ references })

type Kind = 'scalar' | 'set' | 'map'
interface TableShape {
  /** Whether its rows exist by themselves; rows of other tables are deleted when nothing holds them. */
  readonly isRoot: boolean
  /** The columns that are written, and how the database reports their changes. */
  readonly columns: Readonly<Record<string, Kind>>
}

export const TABLES = {
  Logical_Switch: { isRoot: true, columns: { name: 'scalar', other_config: 'map', dns_records: 'set' } },
  Logical_Switch_Port: {
    isRoot: false,
    columns: {
      name: 'scalar',
      type: 'scalar',
      addresses: 'set',
      port_security: 'set',
      options: 'map',
      dhcpv4_options: 'scalar',
      dhcpv6_options: 'scalar',
    },
  },
  Port_Group: { isRoot: true, columns: { name: 'scalar', ports: 'set' } },
  ACL: { isRoot: false, columns: { direction: 'scalar', priority: 'scalar', match: 'scalar', action: 'scalar' } },
  Logical_Router: { isRoot: true, columns: { name: 'scalar', options: 'map' } },
  Logical_Router_Port: {
    isRoot: false,
    columns: {
      name: 'scalar',
      mac: 'scalar',
      networks: 'set',
      options: 'map',
      ipv6_ra_configs: 'map',
    },
  },
  Logical_Router_Static_Route: {
    isRoot: false,
    columns: { ip_prefix: 'scalar', nexthop: 'scalar', output_port: 'scalar' },
  },
  Logical_Router_Policy: { isRoot: false, columns: { priority: 'scalar', match: 'scalar', action: 'scalar' } },
  NAT: {
    isRoot: false,
    columns: { type: 'scalar', external_ip: 'scalar', logical_ip: 'scalar', allowed_ext_ips: 'scalar' },
  },
  Address_Set: { isRoot: true, columns: { name: 'scalar', addresses: 'set' } },
  DHCP_Options: { isRoot: true, columns: { cidr: 'scalar', options: 'map' } },
  DNS: { isRoot: true, columns: { records: 'map' } },
  Gateway_Chassis: { isRoot: false, columns: { name: 'scalar', chassis_name: 'scalar', priority: 'scalar' } },
} as const satisfies Readonly<Record<string, TableShape>>
export type Table = keyof typeof TABLES
export const TABLE_NAMES = Object.keys(TABLES) as readonly Table[] // the keys of the object

export const tableShape = (table: Table): TableShape => TABLES[table]

/** The UUID namespace of the platform's rows; RFC 4122 requires one. */
const NAMESPACE = Buffer.from('8c6f3f0f6f0b4b0f9a5d4d6f61c5a7be', 'hex')

/** The id of a row in the database: a UUID of version 5. */
export function rowId(zone: string, { table, key }: RowRef): string {
  const hash = createHash('sha1').update(NAMESPACE).update(`${zone}/${table}/${key}`).digest()
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80
  const text = hash.toString('hex')
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20, 32)].join('-')
}
