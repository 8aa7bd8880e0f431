import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Cache } from '../../../kit/kube/cache.ts'
import {
  openReflectorMetrics,
  RELIST_MILLISECONDS,
  runReflector,
  WATCH_IDLE_MAXIMUM_MILLISECONDS,
} from '../../../kit/kube/reflector.ts'
import type { Transport, TransportResponse } from '../../../kit/kube/transport.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { type Logger, silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { Child, NAMESPACE, openWorld, type ChildSpec, type World } from '../world.ts'

type Disturb = (serve: Transport, clock: Clock) => Transport

const isWatch = (path: string): boolean => path.includes('watch=true')
const refusal = (code: number, reason: string, headers: Record<string, string> = {}): TransportResponse => ({
  status: code,
  headers,
  text: async () => JSON.stringify({ kind: 'Status', status: 'Failure', code, reason, message: reason }),
  async *lines() {},
})

const EMPTY: Omit<TransportResponse, 'lines'> = {
  status: 200,
  headers: {},
  text: async () => JSON.stringify({ kind: 'ChildList', metadata: { resourceVersion: '1' }, items: [] }),
}

/** Changes what watches say. */
const onWatches =
  (change: (lines: AsyncIterable<string>) => AsyncIterable<string>): Disturb =>
  (serve) =>
  async (request) => {
    const response = await serve(request)
    return isWatch(request.path) ? { ...response, lines: () => change(response.lines()) } : response
  }

async function start(world: World, disturb?: Disturb, log: Logger = silentLog) {
  const counts = { lists: 0, watches: 0 }
  const counted: Disturb = (serve, clock) => {
    const inner = disturb?.(serve, clock) ?? serve
    return (request) => {
      counts[isWatch(request.path) ? 'watches' : 'lists']++
      return inner(request)
    }
  }
  const failures: unknown[] = []
  const member = world.join('member', counted)
  const cache = new Cache<ChildSpec>(Child, (error) => failures.push(error))
  const registry = openRegistry({ isProcessWide: false })
  const stop = new AbortController()
  const running = runReflector(
    {
      store: member.store,
      cache,
      clock: member.clock,
      random: world.scheduler.random,
      log,
      metrics: openReflectorMetrics(registry),
    },
    stop.signal,
  )
  const end = async () => {
    stop.abort()
    await world.settled(running)
    expect(failures).toEqual([]) // what listeners expected
  }
  return { cache, counts, registry, end }
}

const draft = (name: string, index = 0) => ({ metadata: { name, namespace: NAMESPACE }, spec: { parent: 'p', index } })
const put = (world: World, name: string, index = 0) => world.settled(world.admin.apply(Child, draft(name, index)))
const remove = (world: World, name: string) => world.settled(world.admin.delete(Child, { namespace: NAMESPACE, name }))
const known = (cache: Cache<ChildSpec>) =>
  cache
    .list()
    .map(({ metadata, spec }) => `${metadata.name}=${spec.index}`)
    .sort()
const actual = async (world: World) =>
  (await world.settled(world.admin.list(Child))).items
    .map(({ metadata, spec }) => `${metadata.name}=${spec.index}`)
    .sort()

test('lists once and follows', async () => {
  const world = await openWorld()
  await put(world, 'a')
  const { cache, counts, end } = await start(world)
  await world.until(() => cache.isReady)
  await put(world, 'b', 1)
  await put(world, 'a', 2)
  await remove(world, 'b')
  await world.pass(1)
  expect(known(cache)).toEqual(['a=2'])
  expect(counts).toEqual({ lists: 1, watches: 1 })
  await end()
})

test('a watch that breaks is taken up where it was, without a list', async () => {
  const world = await openWorld()
  const { cache, counts, end } = await start(
    world,
    onWatches(async function* (lines) {
      for await (const line of lines) {
        yield line
        throw new Error('connection reset')
      }
    }),
  )
  await world.until(() => cache.isReady)
  for (let index = 0; index < 4; index++) await put(world, `w${index}`)
  await world.until(() => cache.size === 4)
  expect(counts.lists).toBe(1)
  await end()
})

test('a watch that falls silent is given up and taken up again within 60 s', async () => {
  const world = await openWorld()
  let isSilent = true
  const { cache, counts, registry, end } = await start(world, (serve) => async (request) => {
    if (!isWatch(request.path) || !isSilent) return serve(request)
    return { ...(await serve(request)), lines: () => silence() }
  })
  await world.until(() => cache.isReady)
  await put(world, 'a')
  await world.pass(1000)
  expect(cache.size).toBe(0)
  isSilent = false
  await world.pass(WATCH_IDLE_MAXIMUM_MILLISECONDS + 5000)
  expect(known(cache)).toEqual(['a=0'])
  expect(counts.lists).toBe(1)
  expect(await registry.metrics()).toContain('svccloud_reflector_silent_watches_total{name="children"} 1')
  await end()
})

test('an instant that is all but there is passed, however the clock rounds', async () => {
  // The sum is reached while the difference is not, and what is left is too little to add.
  let now = 1_025_017.459_071_678_7
  const reached = now + WATCH_IDLE_MAXIMUM_MILLISECONDS
  const left = WATCH_IDLE_MAXIMUM_MILLISECONDS - (reached - now)
  expect([left > 0, reached + left]).toEqual([true, reached])
  const world = await openWorld()
  const timers: (() => void)[] = []
  const clock: Clock = {
    ...world.join('member').clock,
    monotonicMilliseconds: () => now,
    after: (milliseconds, work) => {
      timers.push(() => void ((now += milliseconds), work()))
      return () => {}
    },
    sleep: () => new Promise(() => {}),
  }
  const store = world.join('other', () => async () => ({ ...EMPTY, lines: () => silence() })).store
  const [registry, stop] = [openRegistry({ isProcessWide: false }), new AbortController()]
  const cache = new Cache<ChildSpec>(Child, () => {})
  const options = { store, cache, clock, random: world.scheduler.random, log: silentLog }
  void runReflector({ ...options, metrics: openReflectorMetrics(registry) }, stop.signal)
  await world.until(() => timers.length > 0)
  for (let count = 0; count < 3; count++) timers.shift()?.()
  expect(await registry.metrics()).toContain('svccloud_reflector_silent_watches_total{name="children"} 1')
  stop.abort()
})

test('bookmarks keep a quiet watch alive', async () => {
  const world = await openWorld()
  const { cache, counts, end } = await start(world)
  await world.until(() => cache.isReady)
  await world.pass(RELIST_MILLISECONDS - 1000)
  expect(counts).toEqual({ lists: 1, watches: 1 })
  await end()
})

test.each(['status', 'event'] as const)(
  'a version that the server no longer has (410 as %s) means a list, which also reports intermediate removals',
  async (how) => {
    const world = await openWorld()
    await put(world, 'a')
    let isExpired = true
    const { cache, counts, end } = await start(world, (serve) => async (request) => {
      if (!isWatch(request.path) || !isExpired) return serve(request)
      isExpired = false
      await world.admin.delete(Child, { namespace: NAMESPACE, name: 'a' })
      await world.admin.create(Child, draft('b'))
      if (how === 'status') return refusal(410, 'Expired')
      return {
        ...refusal(410, 'Expired'),
        status: 200,
        async *lines() {
          yield JSON.stringify({
            type: 'ERROR',
            object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' },
          })
        },
      }
    })
    await world.until(() => cache.get({ namespace: NAMESPACE, name: 'b' }) !== undefined)
    expect(known(cache)).toEqual(['b=0'])
    expect(counts.lists).toBe(2)
    await end()
  },
)

test.each([
  [504, 'Timeout', 2, 'it has not come to the version: it is another or was restored'],
  [410, 'Expired', 2, 'the server no longer has the version'],
  [429, 'TooManyRequests', 1, 'the server is busy'],
  [500, 'InternalError', 1, 'the server has failed'],
] as const)('a watch that is refused with %d (%s) has led to %d lists: %s', async (code, reason, lists, _why) => {
  const world = await openWorld()
  let refusals = 1
  const { cache, counts, end } = await start(world, (serve) => async (request) => {
    if (!isWatch(request.path) || refusals === 0) return serve(request)
    refusals -= 1
    return refusal(code, reason)
  })
  await world.until(() => cache.isReady)
  await world.pass(60_000)
  expect([refusals, counts.lists]).toEqual([0, lists])
  await end()
})

test.each([
  [1, 0, []],
  [3, 2, []],
  [100, 99, ['watch failed']],
] as const)(
  'a version that the server lacks %d times in a row fails %d times and wakes somebody %j',
  async (...row) => {
    const [times, failed, expected] = row
    const world = await openWorld()
    const warnings: string[] = []
    const log: Logger = { ...silentLog, warn: (message) => void warnings.push(message), with: () => log }
    let refusals = times as number
    const { cache, registry, end } = await start(
      world,
      (serve) => async (request) => {
        if (!isWatch(request.path) || refusals === 0) return serve(request)
        refusals -= 1
        return refusal(410, 'Expired')
      },
      log,
    )
    await world.until(() => cache.isReady)
    await world.pass(3_600_000)
    expect([refusals, warnings]).toEqual([0, expected])
    const failures = `svccloud_reflector_failures_total{name="children"} ${failed}`
    expect((await registry.metrics()).includes(failures)).toBe(failed > 0)
    await end()
  },
)

test('an event that the watch left out is found by the next list, and counted', async () => {
  const world = await openWorld()
  const { cache, registry, end } = await start(
    world,
    onWatches(async function* (lines) {
      for await (const line of lines) if (!line.includes('"name":"lost"')) yield line
    }),
  )
  await world.until(() => cache.isReady)
  await put(world, 'lost')
  await put(world, 'seen')
  await world.pass(60_000)
  expect(known(cache)).toEqual(['seen=0'])
  await world.pass(RELIST_MILLISECONDS * 1.5)
  expect(known(cache)).toEqual(['lost=0', 'seen=0'])
  expect(await registry.metrics()).toContain('svccloud_reflector_relist_corrections_total{name="children"} 1')
  await end()
})

test('an unreachable server is asked ever more rarely, and found again within 30 s', async () => {
  const world = await openWorld()
  let isDown = true
  const { cache, counts, end } = await start(world, (serve) => async (request) => {
    if (isDown) throw new Error('connection refused')
    return serve(request)
  })
  await world.pass(600_000)
  // Each list is tried four times by the client.
  expect(counts.lists / 4).toBeLessThan(60)
  isDown = false
  await world.pass(31_000)
  expect(cache.isReady).toBe(true)
  await end()
})

test('a kind that is installed later is found soon after', async () => {
  const world = await openWorld()
  let isInstalled = false
  const { cache, end } = await start(
    world,
    (serve) => async (request) =>
      isInstalled ? serve(request) : { ...refusal(404, ''), text: async () => '404 page not found' },
  )
  await world.pass(120_000)
  isInstalled = true
  await world.until(() => cache.isReady, 2_100)
  await end()
})

test('a server that asks for patience gets it', async () => {
  const world = await openWorld()
  const { counts, end } = await start(world, () => async () => refusal(429, 'TooManyRequests', { 'retry-after': '20' }))
  await world.pass(59_000)
  expect(counts.lists).toBe(3)
  await end()
})

test('a list that is older than what was seen is not taken', async () => {
  const world = await openWorld()
  await put(world, 'gone')
  let first: TransportResponse | undefined
  let isStale = false
  const { cache, counts, end } = await start(world, (serve) => async (request) => {
    if (isWatch(request.path)) return isStale ? refusal(410, 'Expired') : serve(request)
    if (isStale && first !== undefined) return first
    const body = await (await serve(request)).text()
    first ??= { ...refusal(200, ''), text: async () => body }
    return { ...refusal(200, ''), text: async () => body }
  })
  await world.until(() => cache.isReady)
  await remove(world, 'gone')
  await put(world, 'a', 2)
  await world.until(() => known(cache).join() === 'a=2')
  isStale = true
  await world.pass(RELIST_MILLISECONDS * 3)
  expect(counts.lists).toBeGreaterThan(2)
  expect(known(cache)).toEqual(['a=2'])
  isStale = false
  await put(world, 'a', 3)
  await world.until(() => known(cache).join() === 'a=3', 60_000)
  await end()
})

async function* silence(): AsyncGenerator<string> {
  await new Promise<never>(() => {})
}

const REFUSALS = [
  refusal(410, 'Expired'),
  refusal(429, 'TooManyRequests'),
  refusal(500, 'InternalError'),
  refusal(504, 'Timeout'),
]
const faults = fc.record({
  refuse: fc.nat(3),
  cut: fc.nat(4),
  silent: fc.nat(6),
  twice: fc.nat(3),
  drop: fc.nat(6),
  late: fc.nat(3),
})
const program = fc.array(
  fc.record({ name: fc.constantFrom('a', 'b', 'c'), isRemoval: fc.boolean(), pass: fc.nat(20_000) }),
  { minLength: 1, maxLength: 12 },
)

test(
  'for any fault on the way, the cache never goes back, and some time after it ends the cache is the state of ' +
    'the server',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(10_000), faults, program, async (seed, rates, steps) => {
        const world = await openWorld(seed)
        let isCalm = false
        const strikes = (rate: number) => !isCalm && rate > 0 && world.scheduler.random.fraction() < rate / 20
        const { cache, end } = await start(world, (serve, clock) => async (request) => {
          await clock.sleep(1 + world.scheduler.random.fraction() * 200)
          if (strikes(rates.refuse)) throw new Error('connection reset')
          if (strikes(rates.refuse))
            return (
              REFUSALS[Math.floor(world.scheduler.random.fraction() * REFUSALS.length)] ?? refusal(500, 'InternalError')
            )
          const response = await serve(request)
          if (!isWatch(request.path)) return response
          return {
            ...response,
            async *lines() {
              for await (const line of response.lines()) {
                if (strikes(rates.late)) await clock.sleep(world.scheduler.random.fraction() * 10_000)
                if (strikes(rates.cut)) throw new Error('connection reset')
                if (strikes(rates.silent)) yield* silence()
                if (strikes(rates.drop)) continue
                yield line
                if (strikes(rates.twice)) yield line
              }
            },
          }
        })
        const highest = new Map<string, number>()
        cache.subscribe((change) => {
          const { name, resourceVersion } = change.object.metadata
          if (change.is === 'removed') return
          expect(Number(resourceVersion)).toBeGreaterThan(highest.get(name) ?? 0)
          highest.set(name, Number(resourceVersion))
        })
        for (const [index, { name, isRemoval, pass }] of steps.entries()) {
          if (isRemoval) await remove(world, name)
          else await put(world, name, index)
          await world.pass(pass)
        }
        isCalm = true
        const wanted = (await actual(world)).join()
        await world.until(() => cache.isReady && known(cache).join() === wanted, RELIST_MILLISECONDS * 1.5 + 60_000)
        await end()
      }),
      { numRuns: 60 },
    )
  },
)
