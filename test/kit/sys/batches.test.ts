import { expect, it } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import { type PendingItem, inBatches } from '../../../kit/sys/batches.ts'

/** Work that ends on command, one batch after the other. */
function held(itemsMaximum?: number) {
  const begun: { readonly key: string; readonly items: readonly number[]; readonly end: () => void }[] = []
  const ask = inBatches<number, string>({
    ...defined({ itemsMaximum }),
    work: (batch: readonly PendingItem<number, string>[], key) =>
      new Promise((resolve) =>
        begun.push({
          key,
          items: batch.map(({ item }) => item),
          end: () => {
            for (const { item, resolve: answer, reject } of batch)
              if (item < 0) reject(new Error(`no ${item}`))
              else answer(`${key}${item}`)
            resolve()
          },
        }),
      ),
  })
  return { begun, ask }
}
/** Until everything that can go on has gone on. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

it('does together what is requested in one turn, and then what came in between', async () => {
  const { begun, ask } = held()
  const first = [ask('a', 1), ask('a', 2)]
  await settle()
  const second = [ask('a', 3), ask('a', 4), ask('a', 5)]
  await settle()
  expect(begun.map(({ items }) => items)).toEqual([[1, 2]])
  begun[0]?.end()
  expect(await Promise.all(first)).toEqual(['a1', 'a2'])
  await settle()
  expect(begun.map(({ items }) => items)).toEqual([
    [1, 2],
    [3, 4, 5],
  ])
  begun[1]?.end()
  expect(await Promise.all(second)).toEqual(['a3', 'a4', 'a5'])
})

it('never lets a key wait for another, and starts again after the last', async () => {
  const { begun, ask } = held()
  const answers = [ask('a', 1), ask('b', 2)]
  await settle()
  expect(begun.map(({ key }) => key)).toEqual(['a', 'b'])
  for (const { end } of begun) end()
  await Promise.all(answers)
  await settle()
  const later = ask('a', 3)
  await settle()
  begun[2]?.end()
  expect(await later).toBe('a3')
})

it('takes no more than the maximum at a time, in the order of asking', async () => {
  const { begun, ask } = held(2)
  const answers = [1, 2, 3, 4, 5].map((item) => ask('a', item))
  for (let batch = 0; batch < 3; batch += 1) {
    await settle()
    begun[batch]?.end()
  }
  await Promise.all(answers)
  expect(begun.map(({ items }) => items)).toEqual([[1, 2], [3, 4], [5]])
})

it('refuses one of a batch without the others', async () => {
  const { begun, ask } = held()
  const answers = Promise.allSettled([ask('a', 1), ask('a', -2), ask('a', 3)])
  await settle()
  begun[0]?.end()
  expect((await answers).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})
