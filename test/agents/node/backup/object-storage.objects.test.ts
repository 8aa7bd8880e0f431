/** Backups in object storage with the real engine behind its proxy: what they contain, who can read them, and what
 *  becomes of them while the store is away or the writer dies. */
import { fork } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDiskWork } from '../../../../agents/node/backup/disk-work.ts'
import { openDiskServer } from '../../../../agents/node/drivers/storage/disk-server.ts'
import { openQcow2Volumes } from '../../../../agents/node/drivers/storage/qcow2.ts'
import type { VolumeStore } from '../../../../agents/node/drivers/storage/volume-store.ts'
import { KeyedMutex } from '../../../../kit/sys/mutex.ts'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { openCertificates } from '../../../../embedded/kubernetes/server/certificates.ts'
import { findEngine } from '../../../../embedded/object-storage/program.ts'
import { type RunningObjectStorage, startObjectStorage } from '../../../../embedded/object-storage/start.ts'
import { probePort } from '../../../../embedded/kit/ports.ts'
import { openFolderStore } from '../../../../kit/chunks/folder-store.ts'
import { StoreAway, StoreFailed } from '../../../../kit/chunks/object-store.ts'
import { openS3Store } from '../../../../kit/chunks/s3-store.ts'
import { openControl } from '../../../../integrations/object-storage/control.ts'
import { newTenantKeys } from '../../../../integrations/object-storage/keys.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import { type BackupJobSpec, type BackupPlace, backupPlaceSecret } from '../../../../resources/backup-job/index.ts'

const MEBIBYTE = 1_048_576
let folder: string
let authority: string
let port = 0
let controlPort: number
let storage: RunningObjectStorage
let volumes: VolumeStore
const places = new Map<string, BackupPlace>()
const never = () => ({ signal: new AbortController().signal, cancel: () => {} })

async function start(): Promise<void> {
  const parts = { clock, random, log: silentLog }
  const certificates = await openCertificates({ ...parts, folder, hosts: ['localhost', '127.0.0.1'] })
  authority = certificates.authority
  storage = await startObjectStorage({
    ...parts,
    folder,
    certificates,
    controlPort,
    host: '127.0.0.1',
    port,
    token: 'token',
    registry: join(folder, 'registry'),
    program: (await findEngine()) ?? 'versitygw',
  })
  port = storage.port
}

/** Of a separate account. */
async function openPlace(accountId: string, zone = 'z1'): Promise<BackupPlace> {
  const { bucketPrefix, ...keys } = newTenantKeys(random)
  const bucket = `${bucketPrefix}backups`
  await openControl({ url: `http://127.0.0.1:${controlPort}`, token: 'token' }, never).putTenant(accountId + zone, {
    ...keys,
    bucketPrefix,
    buckets: [bucket],
    quotaBytes: 2 ** 50,
    isSuspended: false,
    isFrozen: false,
  })
  const place = { url: `https://localhost:${port}/${bucket}`, authority, ...keys, backend: 'svc-s3-single' } as const
  places.set(backupPlaceSecret(accountId, zone), place)
  return place
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-object-backups-'))
  await mkdir(join(folder, 'work'))
  controlPort = await probePort('127.0.0.1', 0)
  await start()
  const server = await openDiskServer({ folder: join(folder, 'served'), host: '127.0.0.1', clock })
  volumes = await openQcow2Volumes({ folder: join(folder, 'volumes'), server, imageFolder: join(folder, 'work') })
})
afterAll(async () => {
  await storage?.stop()
  await rm(folder, { recursive: true, force: true })
})

const base64 = (text: string) => Buffer.from(text).toString('base64')
const openWork = (bytesPerSecond = 1_000 * MEBIBYTE) =>
  openDiskWork({
    location: undefined,
    environment: {},
    bytesPerSecond,
    folder: join(folder, 'work'),
    hypervisor: { monitorOf: () => undefined, inspect: async () => undefined },
    volumes,
    diskLocks: new KeyedMutex(),
    userOf: async () => undefined,
    store: {
      get: async (_type: unknown, { name }: { name: string }) => ({
        data: { key: base64('01'.repeat(32)), place: base64(JSON.stringify(places.get(name) ?? {})) },
      }),
    } as never, // nothing else is asked of it
    namespace: 'node-n1',
    clock,
    random,
  })
const jobOf = (accountId: string, work: BackupJobSpec['work'], name: string, volume: string): BackupJobSpec => ({
  backup: { namespace: 'acct', name, uid: name },
  work,
  accountId,
  secretName: 'key',
  storageId: 's1',
  volume,
  objectStorageZone: 'z1',
})
const options = { signal: new AbortController().signal, onProgress: () => {} }

async function newDisk(name: string, mebibytes: number): Promise<void> {
  await volumes.create({ name, sizeGibibytes: 1 })
  const writes = Array.from({ length: mebibytes }, (_, at) => ['-c', `write -P ${at + 1} ${at}M 1M`]).flat()
  await runProgram('qemu-io', [...writes, await volumes.pathOf(name)])
}
async function expectEqual(one: string, other: string): Promise<void> {
  const paths = await Promise.all([one, other].map((name) => volumes.pathOf(name)))
  expect(await runProgram('qemu-img', ['compare', ...paths])).toContain('Images are identical')
}

test('a backup is whole there, and nobody reads it with the key of another account', async () => {
  const [own, other] = [await openPlace('own'), await openPlace('other')]
  await newDisk('v1', 4)
  expect(await openWork().run(jobOf('own', 'write', 'b1', 'v1'), options)).toMatchObject({
    target: 'zone-object-store',
    isSameHost: true,
  })
  const { damage } = await openWork().run(jobOf('own', 'verify', 'b1', 'v1'), options)
  expect(damage).toBeUndefined()
  await volumes.create({ name: 'v2', sizeGibibytes: 1 })
  await openWork().run(jobOf('own', 'restore', 'b1', 'v2'), options)
  await expectEqual('v1', 'v2')
  expect(await readdir(join(folder, 'work'))).toEqual([])

  const bucket = new URL(own.url).pathname.slice(1)
  const data = (number: string) => join(folder, 'tenants', number, 'data')
  const numbers = await readdir(join(folder, 'tenants'))
  const holders = await Promise.all(numbers.map(async (number) => (await readdir(data(number))).includes(bucket)))
  const holder = numbers[holders.indexOf(true)] ?? ''
  expect(await openFolderStore(join(data(holder), bucket)).get('m/b1', MEBIBYTE)).toBeDefined()
  const asOther = { url: new URL(own.url), authority, credentials: other, clock }
  const refused = await openS3Store(asOther)
    .get('m/b1', MEBIBYTE)
    .catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(StoreFailed)
  expect(refused).not.toBeInstanceOf(StoreAway)
})

test('a backup is copied from the store of one zone to that of another, and is independent there', async () => {
  await openPlace('copied')
  await openPlace('copied', 'z2')
  await newDisk('v5', 4)
  await openWork().run(jobOf('copied', 'write', 'b1', 'v5'), options)
  const { volume: _volume, ...copy } = { ...jobOf('copied', 'copy', 'c1', 'v5'), objectStorageZone: 'z2' }
  const copyOf = { name: 'b1', zone: 'z1', objectStorageZone: 'z1' }
  expect(await openWork().run({ ...copy, copyOf }, options)).toMatchObject({ isSameHost: false })
  // The zone of the first is lost.
  places.delete(backupPlaceSecret('copied', 'z1'))
  await volumes.create({ name: 'v6', sizeGibibytes: 1 })
  await openWork().run({ ...jobOf('copied', 'restore', 'c1', 'v6'), objectStorageZone: 'z2' }, options)
  await expectEqual('v5', 'v6')
})

test('a store that is away is waited for, says so, and has lost nothing when it is back', async () => {
  await openPlace('patient')
  await newDisk('v3', 4)
  const first = jobOf('patient', 'write', 'b1', 'v3')
  await openWork().run(first, options)
  await storage.stop()
  const failure = await openWork()
    .run(jobOf('patient', 'write', 'b2', 'v3'), options)
    .catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(StoreAway)
  expect(String(failure)).toContain('ECONNREFUSED')
  await start()
  await openWork().run({ ...jobOf('patient', 'write', 'b2', 'v3'), parent: 'b1' }, options)
  for (const name of ['b1', 'b2'])
    expect((await openWork().run(jobOf('patient', 'verify', name, 'v3'), options)).damage).toBeUndefined()
})

test('a writer that is killed leaves no backup; the next one makes it whole', async () => {
  await openPlace('killed')
  await newDisk('v4', 8)
  const writer = fork(new URL('backup-writer.ts', import.meta.url), {
    env: {
      ...process.env,
      WRITER: JSON.stringify({ folder, place: places.get(backupPlaceSecret('killed', 'z1')) }),
    },
  })
  const ended = new Promise((resolve) => writer.once('exit', (_code, signal) => resolve(signal)))
  const written = new Promise((resolve) => writer.once('message', resolve)) // chunks are there, the manifest is not
  expect(await Promise.race([written, ended])).toBe('written')
  writer.kill('SIGKILL')
  expect(await ended).toBe('SIGKILL')
  const verify = () => openWork().run(jobOf('killed', 'verify', 'b1', 'v4'), options)
  expect((await verify()).damage).toContain('b1')
  await openWork().run(jobOf('killed', 'write', 'b1', 'v4'), options)
  expect((await verify()).damage).toBeUndefined()
})
