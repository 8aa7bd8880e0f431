/** The engine alone, as it is started: what must hold of it, because nothing before it makes up for it. */
import { chown, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openBounds } from '../../../embedded/object-storage/cgroup.ts'
import {
  type StorageEngine,
  type EngineKey,
  openEngine,
  SIGNING_REGION,
} from '../../../embedded/object-storage/engine.ts'
import { findEngine } from '../../../embedded/object-storage/program.ts'
import { openSpawner } from '../../../embedded/object-storage/spawner.ts'
import { signRequest } from '../../../kit/chunks/sign-request.ts'
import { newTenantKeys } from '../../../integrations/object-storage/keys.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { isRoot } from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { eventually } from '../../eventually.ts'
import { sendTo } from './cells.ts'

const UNBOUNDED = { bounds: await openBounds({ parent: '/nowhere' }), group: undefined }

/** Its sockets are there a moment before it listens at them. */
const whenUp = (engine: StorageEngine, key: EngineKey) =>
  eventually('the engine to know its user', async () => {
    await engine.ensureUser(key)
    await engine.check(key)
    return true
  })

test.runIf(isRoot()).each([
  { kind: 'uid', hasProc: true, uid: 0x7fee_0001 },
  { kind: 'uid', hasProc: false, uid: 0x7fee_0001 },
  { kind: 'account', hasProc: true, uid: 0x7fee_0001 },
  { kind: 'namespace', hasProc: true, uid: undefined },
  { kind: 'process', hasProc: true, uid: undefined },
] as const)('an engine serves in a cell: %o', async ({ uid, ...isolation }) => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-engine-'))
  for (const part of ['data', 'versions', 'run', 'empty']) await mkdir(join(folder, part))
  if (uid !== undefined) for (const part of ['data', 'versions', 'run']) await chown(join(folder, part), uid, uid)
  const { bucketPrefix, ...root } = newTenantKeys(systemRandom)
  const program = (await findEngine()) ?? 'versitygw'
  const spawner = openSpawner({ isolation, clock: systemClock, empty: join(folder, 'empty'), program, ...UNBOUNDED })
  const running = await spawner.start({ folder, uid }, root)
  onTestFinished(async () => {
    running.end()
    await running.ended
    await running.forget()
    await rm(folder, { recursive: true })
  })
  const engine = openEngine({ ...running, root, clock: systemClock })
  const { bucketPrefix: _, ...key } = newTenantKeys(systemRandom)
  await whenUp(engine, key)
  await engine.ensureBucket(key, `${bucketPrefix}a`)
  const object = `/${bucketPrefix}a/object`
  expect((await sendTo(running.s3, key, { method: 'PUT', target: object, body: 'content' })).status).toBe(200)
  expect(await engine.sizeOf(key, object)).toBe(7)
  if (!isolation.hasProc) expect(await readdir(`/proc/${running.pid()}/root/proc`)).toEqual([])
  const status = await readFile(`/proc/${running.pid()}/status`, 'utf8')
  expect(/^Uid:\s+(\d+)/m.exec(status)?.[1]).toBe(String(uid ?? 0))
  expect([/^CapEff:\s+(\w+)/m.exec(status)?.[1], /^NoNewPrivs:\s+(\d)/m.exec(status)?.[1]]).toEqual([
    '0000000000000000',
    '1',
  ])
})

const CONNECTIONS = 8
const ROUNDS = 100

test('users whose requests take turns on its connections are all known by their own secrets', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-engine-'))
  for (const part of ['data', 'versions', 'run', 'empty']) await mkdir(join(folder, part))
  const { bucketPrefix: _, ...root } = newTenantKeys(systemRandom)
  const spawner = openSpawner({
    isolation: { kind: 'process', hasProc: true },
    clock: systemClock,
    empty: join(folder, 'empty'),
    ...UNBOUNDED,
    program: (await findEngine()) ?? 'versitygw',
  })
  const running = await spawner.start({ folder, uid: undefined }, root)
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  onTestFinished(async () => {
    agent.destroy()
    running.end()
    await running.ended
    await running.forget()
    await rm(folder, { recursive: true })
  })
  const engine = openEngine({ ...running, root, clock: systemClock })
  const users = Array.from({ length: 3 }, () => newTenantKeys(systemRandom))
  for (const { bucketPrefix, ...key } of users) {
    await whenUp(engine, key)
    await engine.ensureBucket(key, `${bucketPrefix}a`)
  }
  const look = async (turn: number): Promise<number> => {
    const { bucketPrefix, ...key } = users[turn % users.length] ?? newTenantKeys(systemRandom)
    const url = new URL(`/${bucketPrefix}a?list-type=2`, 'http://localhost')
    const signed = signRequest(
      { method: 'GET', url, body: Buffer.of() },
      { ...key, region: SIGNING_REGION },
      new Date(),
    )
    const path = `${url.pathname}${url.search}`
    const sent = request({ socketPath: running.s3, agent, path, headers: { ...signed, host: 'localhost' } })
    return new Promise((resolve, reject) => {
      sent.once('error', reject).once('response', (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode ?? 0))
      })
      sent.end()
    })
  }
  const statuses: number[] = []
  const client = async (first: number) => {
    for (let turn = first; turn < first + ROUNDS; turn++) statuses.push(await look(turn))
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, (_none, first) => client(first)))
  expect(new Set(statuses)).toEqual(new Set([200]))
})
