/** Stores that go back, without other faults: a deleted server that Kubernetes names again, and a server that
 *  PostgreSQL knows no more. Where hosts make disks twice, or where nothing keeps what such a server uses, the checkers
 *  must see it. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { type Life, live, MINUTE_MILLISECONDS, serverNamed } from './life.ts'
import { ask } from './requests.ts'
import { putBack } from './restores.ts'
import type { WorldOptions } from './world.ts'

const COPY = 0

const connection = useConnection()
const inWorld = (options: WorldOptions, life: (life: Life) => Promise<void>) => live(connection(), options, life)

async function nameDeletedServer({ world, send, pass }: Life): Promise<void> {
  const { json } = await send('POST', '/v1/servers', serverNamed('web'))
  const copy = world.restore.kubernetes.copy()
  expect((await send('DELETE', `/v1/servers/${json.server.id}`)).status).toBe(202)
  expect(world.hosts.flatMap(({ volumes }) => [...volumes.keys()])).toEqual([])
  void putBack(world.restore, { kubernetes: copy })
  await pass(5 * MINUTE_MILLISECONDS)
}

it('makes no blank disk for a deleted server that an older Kubernetes names', async () => {
  expect(await inWorld({}, nameDeletedServer)).toEqual([])
})

it('finds a host that makes one', async () => {
  expect(await inWorld({ without: 'made_once' }, nameDeletedServer)).toContainEqual(
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

/** Its guest runs on, and only its claims say what that uses. */
async function missServer({ world, send, pass }: Life): Promise<void> {
  const copy = world.restore.kubernetes.copy()
  expect((await send('POST', '/v1/servers', serverNamed('web'))).status).toBe(202)
  void putBack(world.restore, { kubernetes: copy })
  await pass(15 * MINUTE_MILLISECONDS) // younger claims are never swept
  await send('POST', '/v1/servers', serverNamed('web'))
  await send('POST', '/v1/servers', serverNamed('db'))
  expect(world.hosts.flatMap(({ machine }) => machine.running()).length).toBeGreaterThan(1)
}

it('gives nobody what a server uses that an older Kubernetes does not name', async () => {
  expect(await inWorld({}, missServer)).toEqual([])
})

it('finds that claims are released without an order', async () => {
  expect(await inWorld({ without: 'order' }, missServer)).toContainEqual(
    expect.stringMatching(/^hostname web of \S+ in zone-a is used by the guests \S+ and \S+ at once$/),
  )
})

it('gives nobody what a server uses that an older PostgreSQL has forgotten', async () => {
  expect(await inWorld({}, forgetServer)).toEqual([])
})

/** Both stores are of the time before it was made: nothing says which name and address its guest has. */
async function forgetEverywhere({ world, send, pass }: Life): Promise<void> {
  void world.restore.database.take(COPY)
  await pass(MINUTE_MILLISECONDS)
  const copy = world.restore.kubernetes.copy()
  expect((await send('POST', '/v1/servers', serverNamed('web'))).status).toBe(202)
  void putBack(world.restore, { kubernetes: copy, database: COPY })
  await pass(5 * MINUTE_MILLISECONDS)
  expect((await send('POST', '/v1/servers', serverNamed('web'))).status).toBe(202)
  expect(world.hosts.flatMap(({ machine }) => machine.running())).toHaveLength(2)
}

it('gives again what both stores have forgotten, which is all that may be given again', async () => {
  expect(await inWorld({}, forgetEverywhere)).toEqual([])
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
  expect(await inWorld({}, forgetRoom)).toEqual([])
})

it('finds that their room is given', async () => {
  expect(await inWorld({ without: 'kept_uses' }, forgetRoom)).toContainEqual(
    expect.stringMatching(/^the guests on \S+ use 4 of 3 cores$/),
  )
})

it('finds that it is given', async () => {
  expect(await inWorld({ without: 'kept_uses' }, forgetServer)).toContainEqual(
    expect.stringMatching(/^hostname web of \S+ in zone-a is used by the guests \S+ and \S+ at once$/),
  )
})

/** The stores go back to the time between the making of a move's target and its hand-over. The guest runs there. */
async function undoMove({ world, account, send, pass }: Life): Promise<void> {
  const { json } = await send('POST', '/v1/servers', serverNamed('web'))
  const running = () => world.hosts.flatMap(({ name, machine }) => machine.running().map(() => name))
  const [source] = running()
  const target = () => world.hosts.find(({ name, volumes }) => name !== source && volumes.size > 0)?.name
  void world.restore.database.take(COPY)
  await pass(MINUTE_MILLISECONDS)
  let operation: string | undefined
  void ask(world, account, 'POST', `/v1/servers/${json.server.id}/move`, {}).then((answer) => {
    operation = answer?.json.operation.id
  })
  const isAwaited = () =>
    world.restore.kubernetes
      .copy()
      .snapshot.some(({ storageKey, key }) => storageKey.endsWith('/instances') && key.startsWith(`node-${target()}/`))
  await pass(MINUTE_MILLISECONDS, () => operation !== undefined && isAwaited())
  const copy = world.restore.kubernetes.copy()
  expect(running()).toEqual([source])
  await pass(MINUTE_MILLISECONDS)
  const brought = target()
  expect(running()).toEqual([brought])
  // Nobody hears yet that the disk of its source was removed.
  world.power.hide(source ?? '', 10 * MINUTE_MILLISECONDS)
  void putBack(world.restore, { kubernetes: copy, database: COPY })
  await pass(10_000)
  expect((await send('POST', `/v1/operations/${operation}/cancel`)).status).toBe(202)
  await pass(MINUTE_MILLISECONDS)
}

it('keeps the newest disk where an older platform undoes the move that brought it', async () => {
  expect(await inWorld({}, undoMove)).toEqual([])
})

it('finds that the newest disk is removed', async () => {
  expect(await inWorld({ without: 'kept_current' }, undoMove)).toContainEqual(
    expect.stringMatching(/^what was written last to disk \S+ is nowhere$/),
  )
})
