/** The operations that turn the rows of one owner in the database into the desired rows: pure. */
import { canonical, type Columns, type CopiedRow, type EncodedValue, setMembers, pairsOf } from './copy.ts'
import type { Bundle } from './ovn.ts'
import type { OvsdbOperation } from './ovsdb.ts'
import { type Row, rowId, type RowRef, tableShape, type Table, TABLES, type Value } from './row.ts'

/** The marks of a row in the database: its zone, its owner, and the row that holds it. */
export const MARKS = { zone: 'svccloud-zone', owner: 'svccloud-owner', parent: 'svccloud-parent' } as const

/** Rows without an owner mark were written before owners existed: they belong to the public network. */
export const publicNetworkOwner = (zone: string): string => `PublicNetwork/${zone}`
/** Of a server in the public network. */
export const publicPortOwner = (serverUid: string): string => `PublicPort/${serverUid}`
/** Of a server in private networks, and of its firewall. */
export const serverOwner = (serverUid: string): string => `Server/${serverUid}`
export const networkOwner = (uid: string): string => `Network/${uid}`
export const routerOwner = (uid: string): string => `Router/${uid}`
export const floatingIpOwner = (uid: string): string => `FloatingIP/${uid}`
export const loadBalancerOwner = (uid: string): string => `LoadBalancer/${uid}`

export function rowOwnerOf({ columns }: CopiedRow): { readonly zone: string; readonly owner: string } {
  const marks = pairsOf(columns['external_ids'])
  const zone = marks.get(MARKS.zone) ?? ''
  return { zone, owner: marks.get(MARKS.owner) ?? publicNetworkOwner(zone) }
}

/** A row in the encoding of the database. */
export interface EncodedRow {
  readonly table: Table
  readonly uuid: string
  readonly columns: Columns
  readonly parent: Holder | undefined
}

interface Holder {
  readonly table: Table
  readonly uuid: string
  readonly column: string
}

export interface EncodedBundle {
  readonly zone: string
  readonly owner: string
  readonly rows: ReadonlyMap<string, EncodedRow>
  /** Rows of other owners that must exist. */
  readonly needs: readonly { readonly table: Table; readonly uuid: string; readonly name: string }[]
}

const uuidAtom = (uuid: string): readonly ['uuid', string] => ['uuid', uuid]

const isList = (value: object): value is readonly string[] => Array.isArray(value)
const hasReferences = (value: object): value is { readonly references: readonly RowRef[] } =>
  'references' in value && Array.isArray(value.references)

/** Rows that a row refers to. */
export const referredBy = ({ columns, parent }: Row): readonly RowRef[] => [
  ...(parent === undefined ? [] : [parent]),
  ...Object.values(columns).flatMap((value) =>
    typeof value === 'object' && hasReferences(value) ? value.references : [],
  ),
]

function encodeValue(zone: string, value: Value): EncodedValue {
  if (typeof value !== 'object') return value
  if (isList(value)) return ['set', [...value]]
  if (hasReferences(value)) return ['set', value.references.map((row) => uuidAtom(rowId(zone, row)))]
  return ['map', Object.entries(value)]
}

export function encodeBundle({ zone, owner, rows }: Bundle): EncodedBundle {
  const encoded = rows.map((row): EncodedRow => {
    const { table, columns, parent } = row
    const unknown = Object.keys(columns).find((column) => !(column in tableShape(table).columns))
    if (unknown !== undefined) throw new Error(`${table} has no column ${unknown} that is written`)
    const holder = parent && { table: parent.table, uuid: rowId(zone, parent), column: parent.column }
    const marks: [string, string][] = [
      [MARKS.zone, zone],
      [MARKS.owner, owner],
      ...(holder === undefined
        ? []
        : [[MARKS.parent, `${holder.table}/${holder.column}/${holder.uuid}`] satisfies [string, string]]),
    ]
    return {
      table,
      uuid: rowId(zone, row),
      columns: {
        ...Object.fromEntries(Object.entries(columns).map(([name, value]) => [name, encodeValue(zone, value)])),
        external_ids: ['map', marks],
      },
      parent: holder,
    }
  })
  const own = new Map(encoded.map((row) => [row.uuid, row]))
  if (own.size < rows.length) throw new Error(`${owner} has two rows of the same key`)
  const needs = new Map(
    rows
      .flatMap(referredBy)
      .map(({ table, key }) => ({ table, name: `${table} ${key}`, uuid: rowId(zone, { table, key }) }))
      .filter(({ uuid }) => !own.has(uuid))
      .map((need) => [need.uuid, need]),
  )
  return { zone, owner, rows: own, needs: [...needs.values()] }
}

/** Whether the database has the row as desired. */
export const isSameRow = (wanted: EncodedRow, known: CopiedRow | undefined): boolean =>
  known !== undefined && changedColumns(wanted, known).length === 0

const changedColumns = ({ columns }: EncodedRow, known: CopiedRow): readonly (readonly [string, EncodedValue])[] =>
  Object.entries(columns).filter(([name, value]) => canonical(value) !== canonical(known.columns[name]))

export interface KnownRows {
  get(uuid: string): CopiedRow | undefined
  /** Rows of the owner. */
  readonly own: Iterable<CopiedRow>
}

/** Operations of one transaction; none when everything is as desired. */
export function rowOperations(bundle: EncodedBundle, known: KnownRows): readonly OvsdbOperation[] {
  const wanted = [...bundle.rows.values()].flatMap((row) => bring(row, known))
  const stale = [...known.own].filter(({ uuid }) => !bundle.rows.has(uuid))
  const staleIds = new Set(stale.map(({ uuid }) => uuid))
  // A holder may be created after the row that it holds, but a reference to the row may be added only after the row
  // exists.
  const [holding, others] = [wanted.filter(({ op }) => op === 'mutate'), wanted.filter(({ op }) => op !== 'mutate')]
  const needs = wanted.length === 0 ? [] : bundle.needs.map(mustExist)
  return [...needs, ...stale.flatMap((row) => remove(row, staleIds)), ...others, ...holding]
}

function bring(row: EncodedRow, known: KnownRows): readonly OvsdbOperation[] {
  const { table, uuid, columns, parent } = row
  const current = known.get(uuid)
  if (current === undefined) {
    const insert = { op: 'insert', table, uuid, row: columns }
    return parent === undefined ? [insert] : [insert, hold('insert', parent, uuid)]
  }
  const changed = changedColumns(row, current)
  const before = holderOf(current)
  const isHeld = before?.uuid === parent?.uuid && before?.column === parent?.column && isHeldWeakly(row, known)
  return [
    ...(changed.length === 0 ? [] : [{ op: 'update', table, where: [is(uuid)], row: Object.fromEntries(changed) }]),
    ...(isHeld || parent === undefined ? [] : [hold('insert', parent, uuid)]),
    ...(isHeld || before === undefined || before.uuid === parent?.uuid ? [] : [hold('delete', before, uuid)]),
  ]
}

/** A root row exists without a holder: it can lose its holder and stay. So the holder's column is checked too. */
function isHeldWeakly({ table, uuid, parent }: EncodedRow, known: KnownRows): boolean {
  if (parent === undefined || !tableShape(table).isRoot) return true
  const holder = known.get(parent.uuid)
  return setMembers(holder?.columns[parent.column]).some((member) => Array.isArray(member) && member[1] === uuid)
}

function remove(row: CopiedRow, staleIds: ReadonlySet<string>): readonly OvsdbOperation[] {
  const { table, uuid } = row
  if (isTable(table) && tableShape(table).isRoot) return [{ op: 'delete', table, where: [is(uuid)] }]
  const holder = holderOf(row)
  if (holder !== undefined) return staleIds.has(holder.uuid) ? [] : [hold('delete', holder, uuid)]
  // The row was written before rows recorded their holder.
  return HOLDERS.map(([holding, column]) => ({
    op: 'mutate',
    table: holding,
    where: [[column, 'includes', uuidAtom(uuid)]],
    mutations: [[column, 'delete', ['set', [uuidAtom(uuid)]]]],
  }))
}

const HOLDERS = [
  ['Logical_Switch', 'ports'],
  ['Logical_Switch', 'acls'],
  ['Logical_Router', 'ports'],
  ['Logical_Router', 'static_routes'],
  ['Logical_Router_Port', 'gateway_chassis'],
] as const

const isTable = (name: string): name is Table => name in TABLES

function holderOf({ columns }: CopiedRow): Holder | undefined {
  const [table = '', column = '', uuid = ''] = (pairsOf(columns['external_ids']).get(MARKS.parent) ?? '').split('/')
  return isTable(table) ? { table, column, uuid } : undefined
}

const is = (uuid: string) => ['_uuid', '==', uuidAtom(uuid)]

const hold = (what: 'insert' | 'delete', { table, uuid, column }: Holder, held: string): OvsdbOperation => ({
  op: 'mutate',
  table,
  where: [is(uuid)],
  mutations: [[column, what, ['set', [uuidAtom(held)]]]],
})

/** Fails the transaction at once when the row does not exist. */
const mustExist = ({ table, uuid }: { readonly table: Table; readonly uuid: string }): OvsdbOperation => ({
  op: 'wait',
  timeout: 0,
  table,
  where: [is(uuid)],
  columns: ['_uuid'],
  until: '==',
  rows: [{ _uuid: uuidAtom(uuid) }],
})
