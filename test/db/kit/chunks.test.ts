import { expect, test } from 'vitest'
import { chunksOf } from '../../../db/kit/chunks.ts'

const rows = (count: number, row: object) => Array.from({ length: count }, () => row)
const sizes = (of: readonly object[]) => [...chunksOf(of)].map(({ length }) => length)

test('a part has as many rows as one statement has parameters for', () => {
  expect(sizes([])).toEqual([])
  expect(sizes(rows(65_535, { a: 1 }))).toEqual([65_535])
  expect(sizes(rows(65_536, { a: 1 }))).toEqual([65_535, 1])
  expect(sizes(rows(21_846, { a: 1, b: 2, c: 3 }))).toEqual([21_845, 1])
})

test('columns that only some rows have count for all', () =>
  expect(sizes([...rows(21_845, { a: 1, b: 2 }), { c: 3 }])).toEqual([21_845, 1]))

test('rows stay in their order', () => {
  const numbered = Array.from({ length: 70_000 }, (_, number) => ({ number }))
  expect([...chunksOf(numbered)].flat()).toEqual(numbered)
})
