import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openControllerMetrics } from '../../../kit/reconcile/metrics.ts'
import { WorkQueue } from '../../../kit/reconcile/queue.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { Scheduler, SimulatedProcess } from '../../sim/scheduler.ts'

function open(seed = 1) {
  const scheduler = new Scheduler(seed)
  const process = new SimulatedProcess('p', scheduler)
  process.begin()
  const registry = openRegistry({ isProcessWide: false })
  const queue = new WorkQueue({
    name: 'q',
    clock: process.clock(),
    random: scheduler.random,
    metrics: openControllerMetrics(registry),
  })
  const arrived: (string | undefined)[] = []
  let isWaiting = false
  /** What is ready now, taken and done, in order. */
  const drain = async () => {
    const keys: string[] = []
    for (;;) {
      if (!isWaiting) {
        isWaiting = true
        void queue.take().then((key) => {
          isWaiting = false
          arrived.push(key)
        })
      }
      await scheduler.drain()
      const key = arrived.shift()
      if (key === undefined) return keys
      keys.push(key)
      queue.done(key)
    }
  }
  const pass = (milliseconds: number) => scheduler.runUntil(scheduler.nowMilliseconds + milliseconds)
  return { scheduler, queue, registry, drain, pass }
}

describe('keys', () => {
  test('a key is there once, however often it was added', async () => {
    const { queue, drain } = open()
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key)
    expect(await drain()).toEqual(['a', 'b'])
  })
  test('a key that is added while it is worked on comes back once, and not before it is done', async () => {
    const { queue } = open()
    queue.add('a')
    expect(await queue.take()).toBe('a')
    queue.add('a')
    queue.add('a')
    queue.add('b')
    expect(await queue.take()).toBe('b')
    queue.done('a')
    expect(await queue.take()).toBe('a')
  })
  test('a worker that waits is served as soon as there is something', async () => {
    const { queue } = open()
    const taken = queue.take()
    queue.add('a')
    expect(await taken).toBe('a')
  })
  test('stopping serves everyone who waits with nothing, and takes nothing more', async () => {
    const { queue } = open()
    const waiting = queue.take()
    queue.stop()
    queue.add('a')
    expect([await waiting, await queue.take()]).toEqual([undefined, undefined])
  })
})

describe('priorities', () => {
  test('low waits for normal, and a normal add lifts what was low', async () => {
    const { queue, drain } = open()
    for (const key of ['l1', 'l2']) queue.add(key, 'low')
    queue.add('n')
    queue.add('l2')
    queue.add('l2', 'low')
    expect(await drain()).toEqual(['n', 'l2', 'l1'])
  })
  test('a normal key stays so when it is added as low while it is worked on', async () => {
    const { queue, drain } = open()
    queue.add('a')
    expect(await queue.take()).toBe('a')
    queue.add('later', 'low')
    queue.add('a')
    queue.add('a', 'low')
    queue.done('a')
    expect(await drain()).toEqual(['a', 'later'])
  })
  test('sixteen of normal priority overtake one of low priority, each time', async () => {
    const { queue, drain } = open()
    const normal = Array.from({ length: 40 }, (_, index) => `n${index}`)
    for (const key of ['low 1', 'low 2']) queue.add(key, 'low')
    for (const key of normal) queue.add(key)
    const order = await drain()
    expect([order.indexOf('low 1'), order.indexOf('low 2')]).toEqual([16, 33])
  })
  test('low is not kept waiting for ever', async () => {
    const { queue, drain } = open()
    queue.add('l', 'low')
    for (let index = 0; index < 100; index++) queue.add(`n${index}`)
    expect((await drain()).indexOf('l')).toBeLessThan(20)
  })
})

describe('delays', () => {
  test('the earliest of several counts, once', async () => {
    const { queue, drain, pass } = open()
    for (const delay of [5000, 1000, 3000]) queue.addAfter('a', delay)
    await pass(999)
    queue.addAfter('b', 1)
    await pass(1)
    queue.add('c')
    expect((await drain()).sort()).toEqual(['a', 'b', 'c'])
    await pass(10_000)
    expect(await drain()).toEqual([])
  })
  test(
    'no delay at all passes through the clock, so that a key that always ' +
      'wants another look leaves room for others',
    async () => {
      const { queue, drain, pass } = open()
      queue.addAfter('restless', 0)
      queue.add('a')
      expect(await drain()).toEqual(['a'])
      await pass(1)
      expect(await drain()).toEqual(['restless'])
    },
  )
  test('a key that is due anyway has none', async () => {
    const { queue, drain, pass } = open()
    queue.add('a')
    queue.addAfter('a', 100)
    expect(await drain()).toEqual(['a'])
    await pass(1_000)
    expect(await drain()).toEqual([])
  })
  test('an add settles the delay', async () => {
    const { queue, drain, pass } = open()
    queue.addAfter('a', 1000)
    queue.add('a')
    expect(await drain()).toEqual(['a'])
    await pass(2000)
    expect(await drain()).toEqual([])
  })
})

test('failures wait from 5 ms to 1000 s, spread over the upper half, and start again when forgotten', async () => {
  const { scheduler, queue } = open()
  const wait = async () => {
    const from = scheduler.nowMilliseconds
    queue.addFailed('a')
    let at: number | undefined
    const taken = queue.take().then((key) => {
      at = scheduler.nowMilliseconds
      return key
    })
    await scheduler.runUntil(from + 2_000_000, () => at !== undefined)
    queue.done((await taken) ?? '')
    return (at ?? 0) - from
  }
  for (let failure = 0; failure < 25; failure++) {
    const ceiling = Math.min(5 * 2 ** failure, 1_000_000)
    const waited = await wait()
    expect(waited).toBeGreaterThanOrEqual(ceiling / 2)
    expect(waited).toBeLessThanOrEqual(ceiling)
  }
  queue.forget('a')
  expect(await wait()).toBeLessThanOrEqual(5)
})

test('metrics carry the names of controller-runtime', async () => {
  const { queue, registry, pass } = open()
  queue.add('a')
  queue.add('b')
  await queue.take()
  await pass(2000)
  const text = await registry.metrics()
  expect(text).toContain('workqueue_depth{name="q"} 1')
  expect(text).toContain('workqueue_adds_total{name="q"} 2')
  expect(text).toContain('workqueue_longest_running_processor_seconds{name="q"} 2')
})

type Step = {
  readonly is: 'add' | 'low' | 'later' | 'fail' | 'take' | 'done' | 'pass'
  readonly key: string
  readonly amount: number
}
const steps = fc.array(
  fc.record({
    is: fc.constantFrom('add', 'low', 'later', 'fail', 'take', 'done', 'pass'),
    key: fc.constantFrom('a', 'b', 'c', 'd'),
    amount: fc.nat(3000),
  }) as fc.Arbitrary<Step>,
  { maxLength: 60 },
)

test('metrics show how many keys wait of both priorities, and how long the work took', async () => {
  const { queue, registry, pass } = open()
  queue.add('a')
  queue.add('b', 'low')
  expect(await registry.metrics()).toContain('workqueue_depth{name="q"} 2')
  await pass(5_000)
  expect(await queue.take()).toBe('a')
  await pass(2_000)
  queue.done('a')
  expect(await registry.metrics()).toContain('workqueue_work_duration_seconds_sum{name="q"} 2')
  queue.stop()
  queue.add('c')
  expect(await registry.metrics()).toContain('workqueue_adds_total{name="q"} 2')
})

test('no key is ever with two workers, and every key that was added is looked at after it was added', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(1000), async (program, seed) => {
      const { scheduler, queue, pass } = open(seed)
      const working = new Set<string>()
      const owed = new Set<string>()
      let takers = 0
      const begin = (key: string | undefined) => {
        takers--
        if (key === undefined) return
        expect(working.has(key)).toBe(false)
        working.add(key)
        owed.delete(key)
      }
      const take = async () => {
        takers++
        void queue.take().then(begin)
        await scheduler.drain()
      }
      for (const { is, key, amount } of program) {
        if (is === 'take' && takers === 0) await take()
        if (is === 'pass') await pass(amount)
        if (is === 'done' && working.delete(key)) queue.done(key)
        if (is === 'add' || is === 'low' || is === 'later' || is === 'fail') {
          owed.add(key)
          if (is === 'add' || is === 'low') queue.add(key, is === 'low' ? 'low' : 'normal')
          if (is === 'later') queue.addAfter(key, amount)
          if (is === 'fail') queue.addFailed(key)
          await scheduler.drain()
        }
      }
      for (let round = 0; round < 20; round++) {
        for (const key of Array.from(working)) {
          working.delete(key)
          queue.done(key)
        }
        if (takers === 0) await take()
        await pass(1_000_000)
      }
      expect([...owed]).toEqual([])
    }),
    { numRuns: 60 },
  )
})
