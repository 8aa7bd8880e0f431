/** What the process with the rights of root does for the one that serves clients: what an order says, of recorded
 *  tenants, and nothing else, whoever has taken that process over. */
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Cells, StartedEngine } from '../../../embedded/object-storage/cells.ts'
import { serveOrders } from '../../../embedded/object-storage/order-server.ts'
import { readLines } from '../../../kit/http/bounded.ts'
import { silentLog } from '../../../kit/sys/log.ts'

const KEYS = { accessKeyId: 'A'.repeat(20), bucketPrefix: 'abcd-', secretAccessKey: 's'.repeat(40) }
const LIVE_MAXIMUM = 3

async function openChannel() {
  const folder = await mkdtemp(join(tmpdir(), 'orders-'))
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(join(folder, 'channel'), resolve))
  const connected = new Promise<Socket>((resolve) => server.once('connection', resolve))
  const client = connect(join(folder, 'channel')).on('error', () => {})
  const channel = (await connected).on('error', () => {})
  onTestFinished(async () => {
    client.destroy()
    channel.destroy()
    server.close()
    await rm(folder, { recursive: true })
  })
  return { client, channel }
}

async function serve() {
  const { client, channel } = await openChannel()
  const done: string[] = []
  const recorded = new Set(['ada', 'bob', 'eve', 'kim'])
  const ends = new Map<string, (how: string) => void>()
  const walks: (() => void)[] = []
  const engine = (id: string): StartedEngine => ({
    pid: () => 7,
    s3: '',
    admin: '',
    root: { accessKeyId: 'K', secretAccessKey: 'S' },
    ended: new Promise((resolve) => ends.set(id, resolve)),
    end: () => ends.get(id)?.('SIGKILL'),
    missing: async () => 'users',
    forget: async () => {},
  })
  const cells: Cells = {
    all: () => [],
    find: () => undefined,
    keep: async ({ id }) => void recorded.add(id),
    prepare: async (id) => void done.push(`prepare ${id}`),
    async start(id) {
      done.push(`start ${id}`)
      return engine(id)
    },
    measure: (id) =>
      new Promise((resolve) => {
        done.push(`measure ${id}`)
        walks.push(() => resolve({ bytes: 1, objects: 1, buckets: 1, files: 1 }))
      }),
    remove: async (id) => void done.push(`remove ${id}`),
  }
  const find = (id: string) =>
    recorded.has(id)
      ? { id, ...KEYS, number: 5, isMade: true, cell: { folder: `/tenants/${id}`, uid: 1_005 } }
      : undefined
  const server = serveOrders({ channel, cells, places: { find }, liveMaximum: LIVE_MAXIMUM, log: silentLog })
  const lines = readLines(client, 100_000)
  let number = 0
  return {
    client,
    done,
    walks,
    server,
    order: (order: object): void => void client.write(`${JSON.stringify({ number: (number += 1), ...order })}\n`),
    next: async (): Promise<unknown> => JSON.parse(String((await lines.next()).value)),
    closed: new Promise<void>((resolve) => client.once('close', () => resolve())),
  }
}

test('an engine of a recorded tenant is started once, looked at and ended', async () => {
  const { order, next, done, server } = await serve()
  order({ order: 'start', id: 'ada' })
  expect(await next()).toEqual({
    number: 1,
    done: { run: 1, number: 5, uid: 1_005, pid: 7, root: { accessKeyId: 'K', secretAccessKey: 'S' } },
  })
  order({ order: 'start', id: 'ada' })
  order({ order: 'remove', id: 'ada' })
  expect([await next(), await next()]).toEqual(
    [2, 3].map((number) => ({ number, failed: 'its engine runs', isLost: false })),
  )
  order({ order: 'missing', run: 1 })
  expect(await next()).toEqual({ number: 4, done: 'users' })
  expect(server.pid('ada')).toBe(7)
  order({ order: 'end', run: 1 })
  expect([await next(), await next()]).toEqual(
    expect.arrayContaining([
      { number: 5, done: null },
      { ended: 1, how: 'SIGKILL' },
    ]),
  )
  order({ order: 'remove', id: 'ada' })
  expect(await next()).toEqual({ number: 6, done: null })
  expect(done).toEqual(['start ada', 'remove ada'])
})

test('nothing is done for tenants that are not recorded, and no more engines run than may', async () => {
  const { order, next, done } = await serve()
  for (const name of ['start', 'prepare', 'measure', 'remove']) order({ order: name, id: 'stranger' })
  for (const number of [1, 2, 3, 4])
    expect(await next()).toEqual({ number, failed: 'no such tenant is recorded', isLost: false })
  for (const id of ['ada', 'bob', 'eve', 'kim']) order({ order: 'start', id })
  const answers = [await next(), await next(), await next(), await next()]
  expect(answers).toContainEqual({ number: 8, failed: 'no more than 3 engines run', isLost: false })
  expect(done).toEqual(['start ada', 'start bob', 'start eve'])
})

test('few folders are walked at a time, however many are ordered', async () => {
  const { order, next, done, walks } = await serve()
  for (const id of ['ada', 'bob', 'eve', 'kim']) order({ order: 'measure', id })
  await expect.poll(() => done).toEqual(['measure ada', 'measure bob'])
  for (let count = 0; count < 4; count++) {
    await expect.poll(() => walks.length).toBeGreaterThan(0)
    walks.shift()?.()
    await next()
  }
  expect(done).toEqual(['measure ada', 'measure bob', 'measure eve', 'measure kim'])
})

const LONG = 'a'.repeat(2_000)
test.each([
  ['another order', { order: 'run', id: 'ada' }],
  ['a path as an id', { order: 'start', id: '../../etc' }],
  ['a folder as an id', { order: 'measure', id: 'ada/data' }],
  ['an id that climbs', { order: 'remove', id: '..' }],
  ['more than the order has', { order: 'start', id: 'ada', program: '/bin/sh' }],
  ['words for the command', { order: 'start', id: 'ada', argv: ['--help'] }],
  ['another user', { order: 'start', id: 'ada', uid: 0 }],
  ['a key that is none', { order: 'keep', id: 'ada', ...KEYS, secretAccessKey: 'x\ny' }],
  ['a prefix that is none', { order: 'keep', id: 'ada', ...KEYS, bucketPrefix: '../' }],
  ['a run that is no number', { order: 'end', run: '1' }],
  ['a longer line', { order: 'start', id: 'ada', program: LONG }],
])('what is no order ends who gives it: %s', async (_name, order) => {
  const served = await serve()
  served.order(order)
  served.order({ order: 'prepare', id: 'ada' })
  await served.closed
  expect(served.done.filter((each) => each !== 'prepare ada')).toEqual([])
})

test('a line without an end is not kept', async () => {
  const { client, closed } = await serve()
  client.write(LONG)
  await closed
})

test('more orders than are answered end who gives them', async () => {
  const { order, closed } = await serve()
  for (let count = 0; count < 1_100; count++) order({ order: 'measure', id: 'ada' })
  await closed
})
