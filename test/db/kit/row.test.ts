/** Names of columns and of fields. */
import { expect, expectTypeOf, test } from 'vitest'
import { camelRow } from '../../../db/kit/row.ts'

test('columns get the names of fields, and values stay as they are', () => {
  const at = new Date(0)
  const row = camelRow({ id: 'a', account_id: 'b', ipv4_cidr: null, sha_256: 'c', move: { begun_at: at } })
  expectTypeOf(row.ipv4Cidr).toEqualTypeOf<null>()
  expect(row).toEqual({ id: 'a', accountId: 'b', ipv4Cidr: null, sha256: 'c', move: { begun_at: at } })
})
