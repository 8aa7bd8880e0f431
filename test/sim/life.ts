/** Directed scenarios of the simulation: one thing after the other, in a world in which nothing fails by itself. */
import type pg from 'pg'
import { KEY, PLAN, TEMPLATE } from './catalog.ts'
import { SimulatedPostgres } from './database.ts'
import { watchGuests } from './invariants.ts'
import { type Account, ask } from './requests.ts'
import { empty } from './simulate.ts'
import { openAccounts } from './workload.ts'
import { openWorld, type World, type WorldOptions } from './world.ts'

const SEED = 1
export const MINUTE_MILLISECONDS = 60_000

export interface Life {
  readonly world: World
  readonly account: Account
  pass(milliseconds: number, isDone?: () => boolean): Promise<unknown>
  /** Asks, and waits for a minute. */
  send(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly json: any }>
}

/** A world of one account without faults, but for those of the `life`. Answers what the checkers saw. */
export async function live(
  client: pg.Client,
  options: WorldOptions,
  life: (life: Life) => Promise<void>,
): Promise<readonly string[]> {
  await empty(client)
  const world = await openWorld(SEED, (scheduler) => new SimulatedPostgres(client, scheduler), {
    ...options,
    isPooled: false,
  })
  const { scheduler } = world
  const violations = new Set<string>()
  const pass: Life['pass'] = (milliseconds, isDone = () => false) =>
    scheduler.runUntil(scheduler.nowMilliseconds + milliseconds, isDone, () =>
      [...watchGuests(world), ...world.uses.look(world.hosts), ...world.orders.look(world.hosts)].forEach((violation) =>
        violations.add(violation),
      ),
    )
  world.calm()
  const [account] = await scheduler.track(openAccounts(world.db, world, 1))
  if (account === undefined) throw new Error('no account')
  await pass(MINUTE_MILLISECONDS, () => world.api() !== undefined)
  await pass(MINUTE_MILLISECONDS)
  const send: Life['send'] = async (method, path, body) => {
    let answer: Awaited<ReturnType<typeof ask>>
    void ask(world, account, method, path, body).then((given) => (answer = given))
    await pass(MINUTE_MILLISECONDS)
    return { status: answer?.response.status ?? 0, json: answer?.json }
  }
  await life({ world, account, pass, send })
  world.end()
  await scheduler.drain()
  return [...violations]
}

export const serverNamed = (hostname: string) => ({
  zone: 'zone-a',
  hostname,
  plan: PLAN,
  template: TEMPLATE,
  ssh_keys: [KEY],
})
