/** Pages of lists hold everything once, in order, and end. */
import { expect, test } from 'vitest'
import { readPage, readPageByTime } from '../../../../apiserver/kit/list/page.ts'
import type { ListPlace } from '../../../../db/kit/page.ts'
import { createCursors } from '../../../../kit/http/cursor.ts'

const cursors = createCursors(new Uint8Array(32))
const call = (limit: number, cursor: string | undefined) =>
  ({ route: { id: 'list_things' }, caller: { kind: 'public' }, query: { limit, cursor } }) as const

test.each([1, 2, 3, 4, 5, 6])('pages of %i', async (limit) => {
  const things = [5, 4, 3, 2, 1].map((second) => ({ createdAt: new Date(second * 1_000), id: `thing-${second}` }))
  const find = async (after: ListPlace | undefined, count: number) =>
    things.filter(({ createdAt }) => after === undefined || createdAt < after.createdAt).slice(0, count)
  const read: (typeof things)[] = []
  let cursor: string | undefined
  do {
    const { items, nextCursor } = await readPageByTime(cursors, call(limit, cursor), find, (thing) => thing)
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
    ),
  ).rejects.toMatchObject({ status: 400 })
})
