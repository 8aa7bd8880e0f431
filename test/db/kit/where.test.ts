import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import { expect, it } from 'vitest'
import type { Tables } from '../../../db/tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../../../db/kit/where.ts'

const db = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (any) => new PostgresIntrospector(any),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})
const id = '00000000-0000-4000-8000-000000000001'
const key = { account_id: id, id: 'n' }
const BUILDERS = {
  selectWhere: (values: object) => selectWhere(db, 'network', values).select('name').compile(),
  updateWhere: (values: object) => updateWhere(db, 'network', values).set({ name: 'b' }).compile(),
  deleteWhere: (values: object) => deleteWhere(db, 'network', values).compile(),
}

it.each([
  ['selectWhere', 'select "name" from "network" where "account_id" = $1 and "id" = $2', [id, 'n']],
  ['updateWhere', 'update "network" set "name" = $1 where "account_id" = $2 and "id" = $3', ['b', id, 'n']],
  ['deleteWhere', 'delete from "network" where "account_id" = $1 and "id" = $2', [id, 'n']],
] as const)('%s has a condition for each value', (name, text, parameters) => {
  const { sql, parameters: sent } = BUILDERS[name](key)
  expect({ sql, sent }).toEqual({ sql: text, sent: parameters })
})

it.each(['selectWhere', 'updateWhere', 'deleteWhere'] as const)('%s never reaches more rows than are meant', (name) => {
  expect(() => BUILDERS[name]({})).toThrow('without a value')
  expect(() => BUILDERS[name]({ ...key, id: undefined })).toThrow('without a value of [id]')
})

it('takes the columns of its table with their types only', () => {
  // @ts-expect-error not a column
  selectWhere(db, 'network', { network_id: 'n' })
  // @ts-expect-error not a text
  selectWhere(db, 'network', { name: 1 })
  // @ts-expect-error null equals nothing
  selectWhere(db, 'server_group', { name: null })
})
