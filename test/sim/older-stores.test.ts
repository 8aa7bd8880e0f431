/** Stores that go back, without other faults: a deleted server that Kubernetes names again, and a server that
 *  PostgreSQL knows no more. Where hosts make disks twice, or where nothing keeps what such a server uses, the checkers
 *  must see it. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { SimulatedPostgres } from './database.ts'
import { watchGuests } from './invariants.ts'
import { empty } from './simulate.ts'
import { ask } from './requests.ts'
import { putBack } from './restores.ts'
import { openAccounts } from './workload.ts'
import { KEY, PLAN, TEMPLATE } from './catalog.ts'
import { openWorld, type World, type WorldOptions } from './world.ts'

const SEED = 1
const MINUTE_MILLISECONDS = 60_000
const COPY = 0

const connection = useConnection()

interface Life {
  readonly world: World
  pass(milliseconds: number, isDone?: () => boolean): Promise<unknown>
  /** Asks, and waits for a minute. */
  send(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly json: any }>
}

/** What the checkers saw. */
async function live(options: WorldOptions, life: (life: Life) => Promise<void>): Promise<readonly string[]> {
  const client = connection()
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
  await life({ world, pass, send })
  world.end()
  await scheduler.drain()
  return [...violations]
}

const serverNamed = (hostname: string) => ({
  ...{ zone: 'zone-a', hostname, plan: PLAN, template: TEMPLATE, ssh_keys: [KEY] },
})

async function nameDeletedServer({ world, send, pass }: Life): Promise<void> {
  const { json } = await send('POST', '/v1/servers', serverNamed('web'))
  const copy = world.restore.kubernetes.copy()
  expect((await send('DELETE', `/v1/servers/${json.server.id}`)).status).toBe(202)
  expect(world.hosts.flatMap(({ volumes }) => [...volumes.keys()])).toEqual([])
  void putBack(world.restore, { kubernetes: copy })
  await pass(5 * MINUTE_MILLISECONDS)
}

it('makes no blank disk for a deleted server that an older Kubernetes names', async () => {
  expect(await live({}, nameDeletedServer)).toEqual([])
})

it('finds a host that makes one', async () => {
  expect(await live({ without: 'made_once' }, nameDeletedServer)).toContainEqual(
    expect.stringMatching(/^disk \S+ is made a second time on \S+, and what it held is nowhere$/),
  )
})

async function forgetServer({ world, send, pass }: Life): Promise<void> {
  void world.restore.database.take(COPY)
  await pass(MINUTE_MILLISECONDS)
  expect((await send('POST', '/v1/servers', serverNamed('web'))).status).toBe(202)
  void putBack(world.restore, { database: COPY })
  await pass(5 * MINUTE_MILLISECONDS)
  await send('POST', '/v1/servers', serverNamed('web'))
  await send('POST', '/v1/servers', serverNamed('db'))
  expect(world.hosts.flatMap(({ machine }) => machine.running()).length).toBeGreaterThan(1)
}

it('gives nobody what a server uses that an older PostgreSQL has forgotten', async () => {
  expect(await live({}, forgetServer)).toEqual([])
})

/** The nodes look empty to PostgreSQL afterwards, and one of them is full. */
async function forgetRoom({ world, send, pass }: Life): Promise<void> {
  void world.restore.database.take(COPY)
  await pass(MINUTE_MILLISECONDS)
  for (const hostname of ['one', 'two', 'three']) await send('POST', '/v1/servers', serverNamed(hostname))
  void putBack(world.restore, { database: COPY })
  await pass(MINUTE_MILLISECONDS)
  expect((await send('POST', '/v1/servers', serverNamed('four'))).status).toBe(202)
  await pass(MINUTE_MILLISECONDS, () => world.hosts.flatMap(({ machine }) => machine.running()).length === 4)
  expect(world.hosts.flatMap(({ machine }) => machine.running())).toHaveLength(4)
}

it('gives nobody the room of servers that an older PostgreSQL has forgotten', async () => {
  expect(await live({}, forgetRoom)).toEqual([])
})

it('finds that their room is given', async () => {
  expect(await live({ without: 'kept_uses' }, forgetRoom)).toContainEqual(
    expect.stringMatching(/^the guests on \S+ use 4 of 3 cores$/),
  )
})

it('finds that it is given', async () => {
  expect(await live({ without: 'kept_uses' }, forgetServer)).toContainEqual(
    expect.stringMatching(/^hostname web of \S+ in zone-a is used by the guests \S+ and \S+ at once$/),
  )
})
