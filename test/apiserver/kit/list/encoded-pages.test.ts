import { expect, test } from 'vitest'
import { createEncodedPages } from '../../../../apiserver/kit/list/encoded-pages.ts'

const pieces = (...names: string[]) => names.map((name) => Buffer.from(JSON.stringify({ name })))
const parse = (json: Buffer): unknown => JSON.parse(json.toString())

test('a page is its pieces in their order, with the cursor', () => {
  const pages = createEncodedPages(1_000)
  expect(parse(pages.join(pieces('a', 'b'), 'next'))).toEqual({
    items: [{ name: 'a' }, { name: 'b' }],
    next_cursor: 'next',
  })
  expect(parse(pages.join([], null))).toEqual({ items: [], next_cursor: null })
})

test('the same pieces are joined once; any other piece, order or cursor makes another page', () => {
  const pages = createEncodedPages(1_000)
  const [a, b, c] = pieces('a', 'b', 'c') as [Buffer, Buffer, Buffer]
  const first = pages.join([a, b], null)
  expect(pages.join([a, b], null)).toBe(first)
  for (const [given, cursor] of [
    [[a, c], null],
    [[a], null],
    [[a, b, c], null],
    [[a, b], 'next'],
  ] as const) {
    expect(parse(pages.join(given, cursor))).toEqual({ items: given.map((piece) => parse(piece)), next_cursor: cursor })
  }
  expect(pages.join([a, b], null)).not.toBe(first) // the last one of those that begin alike is kept
  expect(pages.join([a, b], null)).toEqual(first)
})

test('what is kept is bounded: the oldest pages go first, and a page that is too large is not kept', () => {
  const pages = createEncodedPages(130)
  const [a, b, c] = pieces('a'.repeat(20), 'b'.repeat(20), 'c'.repeat(20)) as [Buffer, Buffer, Buffer]
  const pageOf = (piece: Buffer) => pages.join([piece], null) // 62 bytes each
  const [first, second] = [pageOf(a), pageOf(b)]
  expect(pageOf(a)).toBe(first)
  expect(pageOf(b)).toBe(second)
  pageOf(c)
  expect(pageOf(b)).toBe(second)
  expect(pageOf(a)).not.toBe(first)
  const large = pieces('d'.repeat(200))
  expect(pages.join(large, null)).not.toBe(pages.join(large, null))
})
