/** Work that runs one at a time. */
import { expect, test } from 'vitest'
import { KeyedMutex, Mutex } from '../../../kit/sys/mutex.ts'

/** Records when work starts and ends; the work ends when `end` is called. */
function openWork(log: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const work = async (): Promise<string> => {
    log.push(`${name} starts`)
    return promise.finally(() => log.push(`${name} ends`))
  }
  return { work, end: () => resolve(name), fail: () => reject(new Error(name)) }
}

test('work waits for the work before it, also when that fails', async () => {
  const log: string[] = []
  const [first, second] = [openWork(log, 'first'), openWork(log, 'second')]
  const mutex = new Mutex()
  const results = Promise.allSettled([mutex.run(first.work), mutex.run(second.work)])
  second.end()
  first.fail()
  expect(await results).toMatchObject([{ reason: new Error('first') }, { value: 'second' }])
  expect(log).toEqual(['first starts', 'first ends', 'second starts', 'second ends'])
})

test('work on one name does not wait for work on another', async () => {
  const log: string[] = []
  const works = ['first', 'other', 'second'].map((name) => openWork(log, name))
  const mutex = new KeyedMutex()
  const [first, other, second] = works.map(({ work }, index) => mutex.run(index === 1 ? 'b' : 'a', work))
  works[1]?.end()
  expect(await other).toBe('other')
  expect(log).toEqual(['first starts', 'other starts', 'other ends'])
  works[0]?.fail()
  works[2]?.end()
  expect(await Promise.allSettled([first, second])).toMatchObject([{ status: 'rejected' }, { value: 'second' }])
  expect(log.slice(3)).toEqual(['first ends', 'second starts', 'second ends'])
})
