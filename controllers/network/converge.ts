/** Brings the northbound database of OVN to the rows that shall be there: reads what is marked as the zone's, and
 *  writes the difference in one transaction. What is not marked is somebody else's. */
import type { Ovsdb, OvsdbOperation } from './ovsdb.ts'
import type { Row, Value } from './topology.ts'

const DATABASE = 'OVN_Northbound'
const ZONE_MARK = 'svccloud-zone'
const KEY_MARK = 'svccloud-key'
const TABLES = [
  'Logical_Switch',
  'Logical_Switch_Port',
  'ACL',
  'Logical_Router',
  'Logical_Router_Port',
  'Logical_Router_Static_Route',
  'DHCP_Options',
  'Gateway_Chassis',
] as const
/** Rows of these are there by themselves; the others go when nothing holds them. */
const ROOTS: readonly string[] = ['Logical_Switch', 'Logical_Router', 'DHCP_Options']

type Atom = string | number | boolean | readonly ['uuid' | 'named-uuid', string]
type Encoded = Atom | readonly ['set', readonly Atom[]] | readonly ['map', readonly (readonly [string, string])[]]

interface Known {
  readonly table: Row['table']
  readonly uuid: string
  readonly columns: Readonly<Record<string, Encoded>>
}

/** Answers how many operations it took; 0 when nothing had to be done. */
export async function converge(ovsdb: Ovsdb, zone: string, rows: readonly Row[]): Promise<number> {
  const operations = difference(zone, rows, await read(ovsdb, zone))
  if (operations.length > 0) await ovsdb.transact(DATABASE, operations)
  return operations.length
}

/** IPv4 addresses of the zone's ports in OVN, by the name of the port. */
export async function heldAddresses(ovsdb: Ovsdb, zone: string): Promise<ReadonlyMap<string, string>> {
  const known = await read(ovsdb, zone)
  return new Map(
    [...known].flatMap(
      ([
        key,
        {
          table,
          columns: { addresses },
        },
      ]) => {
        const [, first = ''] =
          table === 'Logical_Switch_Port' && typeof addresses === 'string' ? addresses.split(' ') : []
        return first.includes('.') ? [[key, first] as const] : []
      },
    ),
  )
}

async function read(ovsdb: Ovsdb, zone: string): Promise<ReadonlyMap<string, Known>> {
  const where = [['external_ids', 'includes', ['map', [[ZONE_MARK, zone]]]]]
  const answers = await ovsdb.transact(
    DATABASE,
    TABLES.map((table) => ({ op: 'select', table, where })),
  )
  return new Map(
    TABLES.flatMap((table, index) =>
      (answers[index]?.rows ?? []).map((row) => {
        const columns = row as Readonly<Record<string, Encoded>> // as RFC 7047 says
        const [, uuid] = columns['_uuid'] as readonly ['uuid', string] // every row has one, as RFC 7047 says
        return [keyOf(columns), { table, uuid, columns }] as const
      }),
    ),
  )
}

function keyOf({ external_ids: marks }: Readonly<Record<string, Encoded>>): string {
  if (!Array.isArray(marks) || marks[0] !== 'map') return ''
  const pairs = marks[1] as readonly (readonly [string, string])[] // texts: the marks are written here only
  return pairs.find(([name]) => name === KEY_MARK)?.[1] ?? ''
}

function difference(zone: string, rows: readonly Row[], known: ReadonlyMap<string, Known>): readonly OvsdbOperation[] {
  const names = new Map(rows.map(({ key }, index) => [key, `row${index}`]))
  const reference = (key: string): Atom => {
    const uuid = known.get(key)?.uuid
    return uuid === undefined ? ['named-uuid', names.get(key) ?? ''] : ['uuid', uuid]
  }
  const encode = (value: Value): Encoded => {
    if (typeof value !== 'object') return value
    if (isList(value)) return ['set', [...value]]
    return isReference(value) ? reference(value.row) : ['map', Object.entries(value)]
  }
  const hold = (op: 'insert' | 'delete', table: string, parent: Atom, column: string, child: Atom): OvsdbOperation => ({
    op: 'mutate',
    table,
    where: [['_uuid', '==', parent]],
    mutations: [[column, op, ['set', [child]]]],
  })
  const tables = new Map(rows.map(({ key, table }) => [key, table]))

  const wanted = rows.flatMap(({ table, key, columns, parent }): OvsdbOperation[] => {
    const encoded = Object.fromEntries(Object.entries(columns).map(([name, value]) => [name, encode(value)]))
    const current = known.get(key)
    if (current === undefined) {
      const marks = [
        'map',
        [
          [ZONE_MARK, zone],
          [KEY_MARK, key],
        ],
      ]
      const insert = { op: 'insert', table, 'uuid-name': names.get(key), row: { ...encoded, external_ids: marks } }
      return parent === undefined
        ? [insert]
        : [insert, hold('insert', tables.get(parent.key) ?? '', reference(parent.key), parent.column, reference(key))]
    }
    const changed = Object.entries(encoded).filter(([name, value]) => plain(value) !== plain(current.columns[name]))
    return changed.length === 0
      ? []
      : [{ op: 'update', table, where: [['_uuid', '==', ['uuid', current.uuid]]], row: Object.fromEntries(changed) }]
  })

  const keys = new Set(rows.map(({ key }) => key))
  const stale = [...known]
    .filter(([key]) => !keys.has(key))
    .flatMap(([, { table, uuid }]): OvsdbOperation[] => {
      if (ROOTS.includes(table)) return [{ op: 'delete', table, where: [['_uuid', '==', ['uuid', uuid]]] }]
      const holder = [...known.values()].find(({ columns }) =>
        HOLDING.some((column) => plain(columns[column]).includes(uuid)),
      )
      const column = HOLDING.find((name) => plain(holder?.columns[name]).includes(uuid))
      return holder === undefined || column === undefined
        ? []
        : [hold('delete', holder.table, ['uuid', holder.uuid], column, ['uuid', uuid])]
    })
  return [...wanted, ...stale]
}

/** Columns by which one row holds others. */
const HOLDING = ['ports', 'acls', 'static_routes', 'gateway_chassis'] as const

const isList = (value: object): value is readonly string[] => Array.isArray(value)
const isReference = (value: object): value is { readonly row: string } =>
  'row' in value && Object.keys(value).length === 1

/** The same text for the same value: a set of one is written as its only member, and order means nothing. */
function plain(value: Encoded | undefined): string {
  if (value === undefined) return '[]'
  if (Array.isArray(value) && (value[0] === 'set' || value[0] === 'map'))
    // its members, as RFC 7047 says
    return JSON.stringify([...(value[1] as readonly unknown[])].map((member) => JSON.stringify(member)).sort())
  return JSON.stringify([JSON.stringify(value)])
}
