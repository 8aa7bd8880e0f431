/** Pages of lists hold everything once, in order, and end. */
import { expect, test } from 'vitest'
import { readPage, readPageByTime } from '../../../../apiserver/kit/list/page.ts'
import type { ListPlace } from '../../../../db/kit/page.ts'
import { createCursors } from '../../../../kit/http/cursor.ts'

const cursors = createCursors(new Uint8Array(32))
const call = (limit: number, cursor: string | undefined) =>
  ({ route: { id: 'list_things', filters: [] }, caller: { kind: 'public' }, query: { limit, cursor } }) as const

const AS_THEY_ARE = { viewsOf: <Item>(items: readonly Item[]): readonly Item[] => items }

test.each([1, 2, 3, 4, 5, 6])('pages of %i', async (limit) => {
  const things = [5, 4, 3, 2, 1].map((second) => ({ createdAt: new Date(second * 1_000), id: `thing-${second}` }))
  const find = async (after: ListPlace | undefined, count: number) =>
    things.filter(({ createdAt }) => after === undefined || createdAt < after.createdAt).slice(0, count)
  type Thing = (typeof things)[number]
  const read: Thing[][] = []
  let cursor: string | undefined
  do {
    const { items, nextCursor } = await readPageByTime<Thing, Thing>(
      cursors,
      call(limit, cursor),
      find,
      (thing) => thing,
      AS_THEY_ARE,
    )
    read.push([...items])
    cursor = nextCursor ?? undefined
  } while (cursor !== undefined)
  expect(read.flat()).toEqual(things)
  expect(read.map(({ length }) => length)).toEqual(
    Array.from({ length: Math.ceil(things.length / limit) }, (_, page) =>
      Math.min(limit, things.length - page * limit),
    ),
  )
})

test('an empty list is one page', async () => {
  expect(
    await readPage(
      cursors,
      call(10, undefined),
      () => [],
      () => ({ sortKey: '', id: '' }),
      AS_THEY_ARE,
    ),
  ).toEqual({ items: [], nextCursor: null })
})

test('a cursor of another list is refused', async () => {
  const cursor = cursors.encode('list_others', '', { sortKey: '1', id: 'one' })
  await expect(
    readPage(
      cursors,
      call(10, cursor),
      () => [],
      () => ({ sortKey: '', id: '' }),
      AS_THEY_ARE,
    ),
  ).rejects.toMatchObject({ status: 400 })
})

/** A list of numbers, the highest first, of which a query with `q` asks for those that contain it. */
function numbers(count: number) {
  const reads: number[] = []
  const find = (after: { readonly id: string } | undefined, wanted: number) => {
    const first = after === undefined ? count : Number(after.id) - 1
    const found = Array.from({ length: Math.max(0, Math.min(wanted, first)) }, (_, at) => first - at)
    reads.push(found.length)
    return found
  }
  const page = (query: { readonly q: string; readonly limit: number; readonly cursor: string | undefined }) =>
    readPage<number, { readonly id: string }>(
      cursors,
      { route: { id: 'list_numbers', filters: ['q'] }, caller: { kind: 'public' }, query },
      find,
      (number) => ({ sortKey: '', id: String(number) }),
      { viewsOf: (found) => found.map((number) => ({ id: String(number), name: `-${number}-` })) },
    )
  /** Every page, until there is none. */
  async function pages(q: string, limit: number) {
    const all: { readonly ids: readonly string[]; readonly read: number }[] = []
    for (let cursor: string | undefined | null; cursor !== null; ) {
      reads.length = 0
      const { items, nextCursor } = await page({ q, limit, cursor })
      all.push({ ids: items.map(({ id }) => id), read: reads.reduce((sum, each) => sum + each, 0) })
      cursor = nextCursor
    }
    return all
  }
  return pages
}

test('a filter that matches few of 10,000 answers them at once', async () => {
  expect(await numbers(10_000)('-777', 50)).toMatchObject([
    { ids: [...Array.from({ length: 10 }, (_, at) => String(7_779 - at)), '777'] },
  ])
})

test.each([1, 3, 7])('pages of %i with a filter hold every match once', async (limit) => {
  const pages = await numbers(3_000)('99', limit)
  const expected = Array.from({ length: 3_000 }, (_, at) => String(3_000 - at)).filter((id) => id.includes('99'))
  expect(pages.flatMap(({ ids }) => ids)).toEqual(expected)
  for (const { ids } of pages.slice(0, -1)) expect(ids).toHaveLength(limit)
})

test('a request reads a bounded number of items, and the next one continues behind them', async () => {
  const pages = await numbers(45_000)('-5-', 50)
  expect(pages.map(({ ids }) => ids)).toEqual([[], [], [], [], ['5']])
  for (const { read } of pages) expect(read).toBeLessThan(10_100)
})
