/** One loss without other faults: a host that nobody hears while its guest keeps running. What makes it safe to start
 *  the guest elsewhere is that its management controller has cut the power; where the controller lies about it, the
 *  checkers must see two guests. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { SimulatedPostgres } from './database.ts'
import { watchGuests } from './invariants.ts'
import { empty } from './simulate.ts'
import { ask } from './requests.ts'
import { openAccounts } from './workload.ts'
import { KEY, PLAN, TEMPLATE } from './catalog.ts'
import { openWorld, type WorldOptions } from './world.ts'

const SEED = 1
const MINUTE_MILLISECONDS = 60_000

const connection = useConnection()

/** Where the guest ran before and runs after the loss, and what the checkers saw meanwhile. */
async function loseHost(options: WorldOptions): Promise<{
  readonly before: readonly string[]
  readonly after: readonly string[]
  readonly violations: readonly string[]
}> {
  const client = connection()
  await empty(client)
  const world = await openWorld(SEED, (scheduler) => new SimulatedPostgres(client, scheduler), {
    ...options,
    hasLosses: true,
    isPooled: true,
  })
  const { scheduler } = world
  const violations = new Set<string>()
  const pass = (milliseconds: number, isDone: () => boolean = () => false) =>
    scheduler.runUntil(scheduler.nowMilliseconds + milliseconds, isDone, () =>
      watchGuests(world).forEach((violation) => violations.add(violation)),
    )
  const hostsInUse = () => world.hosts.filter(({ machine }) => machine.running().length > 0).map(({ name }) => name)

  world.calm()
  const [account] = await scheduler.track(openAccounts(world.db, world, 1))
  if (account === undefined) throw new Error('no account')
  await pass(MINUTE_MILLISECONDS, () => world.api() !== undefined)
  await pass(MINUTE_MILLISECONDS)
  void ask(world, account, 'POST', '/v1/servers', {
    zone: 'zone-a',
    hostname: 'web',
    plan: PLAN,
    template: TEMPLATE,
    ssh_keys: [KEY],
  })
  await pass(MINUTE_MILLISECONDS)
  const before = hostsInUse()
  for (const host of before) world.power.hide(host, 10 * MINUTE_MILLISECONDS)
  await pass(3 * MINUTE_MILLISECONDS)
  const after = hostsInUse()
  world.end()
  await scheduler.drain()
  return { before, after, violations: [...violations] }
}

it('a guest starts elsewhere once the power of its host is cut, and never twice', async () => {
  const { before, after, violations } = await loseHost({})
  expect([before.length, after.length, violations]).toEqual([1, 1, []])
  expect(after).not.toEqual(before)
})

it('finds a management controller that says the power is off and leaves it on', async () => {
  const { violations } = await loseHost({ without: 'power' })
  expect(violations).toEqual([expect.stringMatching(/^guest \S+ runs on \S+ and \S+ at once$/)])
})
