/** Snapshots of a control plane in object storage, over HTTP, while etcd only streams what tests say. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { NotReady } from '../../../hosting/core/not-ready.ts'
import { recoverFolder, SnapshotKeeper } from '../../../hosting/core/snapshot-keeper.ts'
import { snapshotFile, snapshotParts, takeSnapshot } from '../../../hosting/core/snapshots.ts'
import { StoreAway } from '../../../kit/chunks/object-store.ts'
import { markOf } from '../../../integrations/control-planes/control.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { type HostileS3, startHostileS3 } from '../../kit/chunks/hostile-s3.ts'

const SECRET = 'the state of a cluster, which nobody else may read'
/** More than one piece. */
const CONTENT = Buffer.concat([Buffer.from(SECRET), systemRandom.bytes(9 * 1024 ** 2)])
/** As etcd sends it. */
const PART_BYTES = 32 * 1024
const clock = {
  ...systemClock,
  sleep: (milliseconds: number, signal?: AbortSignal) => systemClock.sleep(Math.min(milliseconds, 10), signal),
}

let folder: string
let server: HostileS3
let keeper: SnapshotKeeper
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-snapshots-'))
  await writeFile(join(folder, 'etcdutl'), '#!/bin/sh\necho \'{"hash":1,"revision":1,"totalKey":1}\'\n', {
    mode: 0o755,
  })
  server = await startHostileS3('clusters')
  keeper = await open()
})
afterEach(async () => {
  await keeper.stop()
  await server.close()
  await rm(folder, { recursive: true })
})

async function open(): Promise<SnapshotKeeper> {
  const lines = Array.from({ length: Math.ceil(CONTENT.length / PART_BYTES) }, (_, index) => {
    const part = CONTENT.subarray(index * PART_BYTES, (index + 1) * PART_BYTES)
    return JSON.stringify({ result: { blob: part.toString('base64') } })
  })
  const answer = () => Object.assign(Readable.from([Buffer.from(`${lines.join('\n')}\n`)]), { statusCode: 200 })
  const opened = new SnapshotKeeper({
    folder,
    controlPlane: 'one',
    clock,
    random: systemRandom,
    log: silentLog,
    // Of a client only this is used, and of its answer only what there is.
    take: (into, id) =>
      takeSnapshot({
        folder: into,
        id,
        etcdutl: join(folder, 'etcdutl'),
        parts: snapshotParts({ open: async () => answer() } as never, 'https://etcd'),
      }),
  })
  await opened.start()
  return opened
}
const placeOf = ({ url }: HostileS3) => ({
  url: `${url.origin}/clusters`,
  authority: null,
  accessKeyId: 'id',
  secretAccessKey: 'secret',
  sealingKey: 'a'.repeat(64),
})
const one = async () => (await keeper.list())[0]
async function take(): Promise<string> {
  const id = newUuid(systemRandom)
  await keeper.take(id, '1.36.3')
  await until('the snapshot', one, (snapshot) => snapshot?.phase === 'done')
  return id
}
const untilStored = () => until('it to be in the store', one, (snapshot) => snapshot?.isStored === true)

test('one that was taken while the store was away goes there later, sealed, and stays in the folder', async () => {
  server.fault = () => 'error'
  await keeper.setPlace(placeOf(server))
  const id = await take()
  const { detail } = await until(
    'the keeper to say so',
    async () => keeper.state,
    (state) => state.detail !== '',
  )
  expect(detail).toContain('wait for the object storage')
  expect(await one()).toMatchObject({ id, isStored: false, sizeBytes: CONTENT.length })
  server.fault = undefined
  await untilStored()
  expect([...server.objects.keys()].toSorted()).toEqual([`c/${id}-0`, `c/${id}-1`, `m/${id}`])
  for (const { bytes } of server.objects.values()) expect(bytes.includes(SECRET)).toBe(false)
  await until(
    'the keeper to be content',
    async () => keeper.state,
    (state) => state.detail === '' && state.mark === markOf(placeOf(server)),
  )
  expect((await readFile(snapshotFile(keeper.folder, id))).equals(CONTENT)).toBe(true)
})

test('a restore gets what the folder has lost or spoilt, and nothing that is not what was taken', async () => {
  await keeper.setPlace(placeOf(server))
  const id = await take()
  await untilStored()
  const file = snapshotFile(keeper.folder, id)
  await writeFile(file, 'spoilt')
  expect((await readFile(await keeper.fileOf(id))).equals(CONTENT)).toBe(true)
  await rm(file)
  expect((await readFile(await keeper.fileOf(id))).equals(CONTENT)).toBe(true)
  await rm(file)
  server.fault = () => 'error'
  await expect(keeper.fileOf(id)).rejects.toThrow(StoreAway)
  for (const [key, fault] of [
    [`c/${id}-1`, 'wrong'],
    [`c/${id}-0`, 'absent'],
  ] as const) {
    server.fault = (request) => (request.key === key ? fault : undefined)
    await expect(keeper.fileOf(id)).rejects.toThrow(/cannot be opened|is not in/)
  }
  // Pieces of one kind do not stand for each other.
  server.fault = undefined
  const other = server.objects.get(`c/${id}-1`)
  if (other !== undefined) server.objects.set(`c/${id}-0`, other)
  await expect(keeper.fileOf(id)).rejects.toThrow('cannot be opened')
})

test('one that is released while the store is away is deleted there later, also over a restart', async () => {
  await keeper.setPlace(placeOf(server))
  const id = await take()
  await untilStored()
  server.fault = () => 'error'
  await keeper.remove(id)
  expect(await keeper.list()).toEqual([])
  expect(server.objects.size).toBe(3)
  await keeper.stop()
  keeper = await open()
  expect(await keeper.list()).toEqual([])
  server.fault = undefined
  await until(
    'the store to be empty',
    async () => server.objects.size,
    (size) => size === 0,
  )
})

const KEYS = ['ca', 'front-ca', 'service-account'].flatMap((name) => [`${name}.crt`, `${name}.key`])

test('a folder that was lost gets its keys and its snapshots back, and none with another key', async () => {
  for (const name of [...KEYS, 'encryption.json']) await writeFile(join(folder, name), `${SECRET}: ${name}`)
  await keeper.setPlace(placeOf(server))
  const id = await take()
  await untilStored()
  for (const { bytes } of server.objects.values()) expect(bytes.includes(SECRET)).toBe(false)
  await keeper.stop()
  await rm(folder, { recursive: true })
  await mkdir(folder)
  const other = { ...placeOf(server), sealingKey: 'b'.repeat(64) }
  await expect(recoverFolder(folder, other, { clock, random: systemRandom })).rejects.toThrow('another key')
  expect(await recoverFolder(folder, placeOf(server), { clock, random: systemRandom })).toEqual([id])
  expect(await readFile(join(folder, 'ca.key'), 'utf8')).toBe(`${SECRET}: ca.key`)
  keeper = await open()
  expect(await keeper.list()).toMatchObject([{ id, release: '1.36.3', isStored: true, sizeBytes: CONTENT.length }])
  expect((await readFile(await keeper.fileOf(id))).equals(CONTENT)).toBe(true)
})

test('a store that was lost gets them again', async () => {
  await keeper.setPlace(placeOf(server))
  await take()
  await untilStored()
  server.objects.clear()
  await keeper.setPlace(placeOf(server))
  await until(
    'all of it to be there again',
    async () => server.objects.size,
    (size) => size === 3,
  )
})

test.each([
  ['waits for an etcd or a reader that is being started', 1_000, true, 'done', 200],
  ['ends when neither starts', 10_000, true, 'failed', 55],
  ['gives up after some failures of what serves', 1_000, false, 'failed', 259],
])('a snapshot that cannot be taken at once %s', async (_what, pauseMilliseconds, serves, phase, attempts) => {
  const elsewhere = await mkdtemp(join(tmpdir(), 'svccloud-snapshots-'))
  let [now, count] = [0, 0]
  const waiting = new SnapshotKeeper({
    folder: elsewhere,
    controlPlane: 'one',
    clock: { ...clock, monotonicMilliseconds: () => now },
    random: systemRandom,
    log: silentLog,
    async take() {
      count++
      now += pauseMilliseconds
      if (count < 200) throw new NotReady('it is being started')
      if (!serves) throw new Error('it does not serve')
      return { sizeBytes: 1, sha256: 'a' }
    },
  })
  try {
    await waiting.start()
    await waiting.take(newUuid(systemRandom), '1.36.3')
    const taken = await until(
      'its end',
      async () => (await waiting.list())[0],
      (snapshot) => snapshot?.phase !== 'running',
    )
    expect([taken?.phase, count]).toEqual([phase, attempts])
  } finally {
    await waiting.stop()
    await rm(elsewhere, { recursive: true })
  }
})
