import { expect, test } from 'vitest'
import { openGroupRead } from '../../../db/kit/group-read.ts'

/** Reads that end on command. What is read is the number of changes that had been made when the reading began. */
function held() {
  let changes = 0
  const begun: { readonly items: readonly string[]; end(error?: Error): void }[] = []
  const ask = openGroupRead<string, string>((items) => {
    const seen = changes
    return new Promise((resolve, reject) =>
      begun.push({
        items,
        end: (error) => (error === undefined ? resolve(items.map((item) => `${item} after ${seen}`)) : reject(error)),
      }),
    )
  })
  return { ask, begun, change: () => void (changes += 1) }
}
/** Until everything that can go on has gone on. */
const settle = () => new Promise((resolve) => setImmediate(resolve))
const itemsOf = ({ begun }: ReturnType<typeof held>) => begun.map(({ items }) => items)

test('what is asked for while a statement is under way is read by the next one', async () => {
  const reads = held()
  const first = reads.ask('a')
  await settle()
  const later = [reads.ask('b'), reads.ask('a'), reads.ask('c')]
  await settle()
  expect(itemsOf(reads)).toEqual([['a']])
  reads.begun[0]?.end()
  expect(await first).toBe('a after 0')
  await settle()
  expect(itemsOf(reads)).toEqual([['a'], ['b', 'a', 'c']])
  reads.begun[1]?.end()
  expect(await Promise.all(later)).toEqual(['b after 0', 'a after 0', 'c after 0'])
})

test('no caller gets a state from before its request', async () => {
  const reads = held()
  void reads.ask('a')
  await settle()
  reads.change()
  const later = reads.ask('a')
  reads.begun[0]?.end()
  await settle()
  reads.begun[1]?.end()
  expect(await later).toBe('a after 1')
})

test('an unreadable row fails only its own callers', async () => {
  const reads = openGroupRead<string, string>(async (items) => {
    if (items.includes('bad')) throw new Error('bad')
    return items.map((item) => `${item}!`)
  })
  const results = await Promise.allSettled(['a', 'bad', 'b'].map((item) => reads(item)))
  expect(
    results.map((result) => (result.status === 'fulfilled' ? result.value : (result.reason as Error).message)),
  ).toEqual(['a!', 'bad', 'b!'])
})

test("an outage is everybody's answer, and the next reading is tried", async () => {
  const reads = held()
  const answers = Promise.allSettled(['a', 'b'].map((item) => reads.ask(item)))
  await settle()
  reads.begun[0]?.end(
    Object.assign(new Error('terminating connection due to administrator command'), { code: '57P01' }),
  )
  expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const later = reads.ask('a')
  await settle()
  reads.begun[1]?.end()
  expect([await later, itemsOf(reads)]).toEqual(['a after 0', [['a', 'b'], ['a']]])
})
