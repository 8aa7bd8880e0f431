import fc from 'fast-check'
import { expect, test } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import { runElected } from '../../../kit/reconcile/lease.ts'
import { Lease } from '../../../kit/kube/object.ts'
import type { Transport } from '../../../kit/kube/transport.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { NAMESPACE, openWorld, type World } from '../world.ts'

interface Candidate {
  readonly mayAct: () => boolean
  readonly isLeading: () => boolean
  readonly outcome: () => string | undefined
  stop(): void
  crash(): void
}

let identities = 0

function stand(
  world: World,
  name: string,
  disturb?: (serve: Transport) => Transport,
  endedIdentity?: string,
): Candidate {
  const { process, store, clock } = world.join(name, disturb)
  const stop = new AbortController()
  let mayAct = () => false
  let isLeading = false
  let outcome: string | undefined
  const options = {
    store,
    clock,
    namespace: NAMESPACE,
    name: 'lead',
    identity: `${name}-${identities++}`,
    ...defined({ endedIdentity }),
    random: world.scheduler.random,
    log: silentLog,
    registry: openRegistry({ isProcessWide: false }),
  }
  void runElected(
    options,
    async (lead) => {
      mayAct = lead.mayAct
      isLeading = true
      await new Promise<void>((resolve) => lead.signal.addEventListener('abort', () => resolve(), { once: true }))
      await clock.sleep(500) // what has been begun is finished
      isLeading = false
    },
    stop.signal,
  ).then((ended) => (outcome = ended))
  return {
    mayAct: () => process.isRunning && mayAct(),
    isLeading: () => process.isRunning && isLeading,
    outcome: () => outcome,
    stop: () => stop.abort(),
    crash: () => process.crash(),
  }
}

const holder = async (world: World) =>
  (await world.settled(world.admin.get(Lease, { namespace: NAMESPACE, name: 'lead' })))?.spec.holderIdentity

test('the first leads at once, the second waits, and takes over at once when the first stops', async () => {
  const world = await openWorld()
  const first = stand(world, 'first')
  await world.until(first.mayAct, 100)
  const second = stand(world, 'second')
  await world.pass(60_000)
  expect([first.mayAct(), second.mayAct()]).toEqual([true, false])
  first.stop()
  await world.until(() => first.outcome() === 'stopped', 1000)
  await world.until(second.mayAct, 2500)
  expect(await holder(world)).toMatch(/^second/)
})

test('a leader that dies is followed after the lease has run out, not before', async () => {
  const world = await openWorld()
  const first = stand(world, 'first')
  const second = stand(world, 'second')
  await world.until(() => first.mayAct() || second.mayAct())
  const [leader, other] = first.mayAct() ? [first, second] : [second, first]
  await world.pass(30_000)
  leader.crash()
  await world.pass(12_000)
  expect(other.mayAct()).toBe(false)
  await world.until(other.mayAct, 8_000)
})

test('a leader that is known to have died is followed at once, by nobody else sooner', async () => {
  const world = await openWorld()
  const first = stand(world, 'first')
  await world.until(first.mayAct, 100)
  const died = await holder(world)
  first.crash()
  const stranger = stand(world, 'stranger', undefined, 'somebody-else')
  await world.pass(5_000)
  expect(stranger.mayAct()).toBe(false)
  const successor = stand(world, 'successor', undefined, died)
  await world.until(successor.mayAct, 100)
  expect(await holder(world)).toMatch(/^successor/)
})

test('a leader that cannot renew stops acting before another may lead, and says that it lost', async () => {
  const world = await openWorld()
  let isCut = false
  const first = stand(world, 'first', (serve) => (request) => (isCut ? new Promise<never>(() => {}) : serve(request)))
  await world.until(first.mayAct)
  const second = stand(world, 'second')
  await world.pass(30_000)
  isCut = true
  await world.pass(10_000)
  expect([first.mayAct(), second.mayAct()]).toEqual([false, false])
  await world.until(second.mayAct, 10_000)
  await world.until(() => first.outcome() === 'lost', 31_000)
  expect(first.isLeading()).toBe(false)
})

test('a renewal that comes through after the lead was lost does not bring it back', async () => {
  const world = await openWorld()
  let isSlow = false
  const first = stand(world, 'first', (serve) => async (request) => {
    if (isSlow) await new Promise<void>((resolve) => world.scheduler.after(14_000, resolve))
    return serve(request)
  })
  await world.until(first.mayAct)
  await world.pass(20_000)
  isSlow = true
  await world.until(() => first.outcome() === 'lost', 16_000)
  isSlow = false
  const actsAgain = await world.scheduler.runUntil(world.scheduler.nowMilliseconds + 60_000, first.mayAct)
  expect(actsAgain).toBe(false)
})

test('the time of a renewal counts from its sending, however late its answer comes', async () => {
  const world = await openWorld()
  let isSlow = false
  let sentAt = 0
  const first = stand(world, 'first', (serve) => async (request) => {
    if (sentAt > 0) return new Promise<never>(() => {}) // cut after the one slow renewal
    if (!isSlow || request.method === 'GET') return serve(request)
    sentAt = world.scheduler.nowMilliseconds
    const response = await serve(request)
    await new Promise<void>((resolve) => world.scheduler.after(6_000, resolve))
    return response
  })
  await world.until(first.mayAct)
  isSlow = true
  await world.until(() => sentAt > 0)
  await world.pass(9_000)
  expect(first.mayAct()).toBe(true)
  await world.pass(1_100)
  expect(first.mayAct()).toBe(false)
})

test('a short break does not cost the lead', async () => {
  const world = await openWorld()
  let isCut = false
  const first = stand(world, 'first', (serve) => async (request) => {
    if (isCut) throw new Error('connection reset')
    return serve(request)
  })
  await world.until(first.mayAct)
  for (let round = 0; round < 20; round++) {
    isCut = !isCut
    await world.pass(4000)
    expect(first.mayAct()).toBe(true)
  }
})

test('stopping before the lead was won says stopped and leaves the lease alone', async () => {
  const world = await openWorld()
  const first = stand(world, 'first')
  await world.until(first.mayAct)
  const second = stand(world, 'second')
  await world.pass(5000)
  second.stop()
  await world.until(() => second.outcome() === 'stopped', 1000)
  expect(await holder(world)).toMatch(/^first/)
})

const program = fc.array(
  fc.record({
    who: fc.nat(2),
    does: fc.constantFrom('crash', 'stop', 'cut', 'mend', 'nothing'),
    pass: fc.integer({ min: 1, max: 25_000 }),
  }),
  { minLength: 3, maxLength: 15 },
)

test('with any cuts, crashes and stops: never two who may act, and when it is over somebody leads', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(10_000), program, async (seed, steps) => {
      const world = await openWorld(seed)
      const cut = [false, false, false]
      const raise = (who: number) =>
        stand(world, `c${who}`, (serve) => async (request) => {
          if (cut[who]) return new Promise<never>(() => {})
          await new Promise<void>((resolve) => world.scheduler.after(world.scheduler.random.fraction() * 1500, resolve))
          if (world.scheduler.random.fraction() < 0.1) throw new Error('connection reset')
          return serve(request)
        })
      const candidates = [0, 1, 2].map(raise)
      const alone = () => expect(candidates.filter((each) => each.mayAct()).length).toBeLessThanOrEqual(1)
      for (const { who, does, pass } of steps) {
        const candidate = candidates[who]
        if (does === 'cut' || does === 'mend') cut[who] = does === 'cut'
        if (does === 'stop') candidate?.stop()
        if (does === 'crash') candidate?.crash()
        if (does === 'crash' || candidate?.outcome() !== undefined) candidates[who] = raise(who)
        await world.scheduler.runUntil(world.scheduler.nowMilliseconds + pass, undefined, alone)
      }
      cut.fill(false)
      for (const who of [0, 1, 2]) if (candidates[who]?.outcome() !== undefined) candidates[who] = raise(who)
      await world.until(
        () => (
          alone(), candidates.some((each) => each.mayAct()) || candidates.every((each) => each.outcome() !== undefined)
        ),
        120_000,
      )
    }),
    { numRuns: 100 },
  )
})
