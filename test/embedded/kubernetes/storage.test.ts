import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { silentLog } from '../../../kit/sys/log.ts'
import { frameOf } from '../../../embedded/kubernetes/storage/log-frame.ts'
import { FolderLocked, LogDamaged, openLogStorage, type LogStorage } from '../../../embedded/kubernetes/storage/log.ts'
import type { StoredRecord } from '../../../embedded/kubernetes/storage/storage.ts'
import { openWidgetWorld, openWorld, widget, WIDGETS } from './world.ts'

let folder: string
const opened: LogStorage[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-storage-'))
})
afterEach(async () => {
  for (const storage of opened.splice(0)) await storage.close().catch(() => {})
  await rm(folder, { recursive: true, force: true })
})

async function open(snapshotAfterBytes = 1_000_000): Promise<LogStorage> {
  const storage = await openLogStorage({ folder, log: silentLog, snapshotAfterBytes })
  opened.push(storage)
  return storage
}

async function logFile(): Promise<string> {
  const name = (await readdir(folder)).find((one) => one.startsWith('log-'))
  if (name === undefined) throw new Error('there is no log')
  return join(folder, name)
}

test('what was written is there after a restart, and watches resume from their revision', async () => {
  const first = await openWidgetWorld({ storage: await open() })
  const made = await first.post(WIDGETS, widget('a'))
  await first.merge(`${WIDGETS}/a`, { spec: { replicas: 4 } })
  await first.core.close()
  const second = await openWorld({ storage: await open() })
  expect((await second.get(`${WIDGETS}/a`)).body.spec.replicas).toBe(4)
  const resumed = await second.core.handle(
    {
      method: 'GET',
      path: `${WIDGETS}?watch=true&timeoutSeconds=1&resourceVersion=${made.body.metadata.resourceVersion}`,
      headers: {},
    },
    { name: 'x', groups: ['system:masters'] },
  )
  const [line] = (await resumed.text()).split('\n')
  expect(JSON.parse(line ?? '')).toMatchObject({ type: 'MODIFIED', object: { spec: { replicas: 4 } } })
})

test('a torn end is cut off and everything before it stays', async () => {
  const first = await openWidgetWorld({ storage: await open() })
  await first.post(WIDGETS, widget('a'))
  await first.core.close()
  await appendFile(await logFile(), '1234abcd [[99,"example.dev/widgets","default/b",{"half":')
  const second = await openWorld({ storage: await open() })
  expect((await second.get(`${WIDGETS}/a`)).status).toBe(200)
  expect((await second.get(`${WIDGETS}/b`)).status).toBe(404)
  await second.post(WIDGETS, widget('c'))
  await second.core.close()
  expect((await (await openWorld({ storage: await open() })).get(`${WIDGETS}/c`)).status).toBe(200)
})

test('damage in the middle is an error, never a guess', async () => {
  const first = await openWidgetWorld({ storage: await open() })
  await first.post(WIDGETS, widget('a'))
  await first.core.close()
  const path = await logFile()
  const lines = (await readFile(path, 'utf8')).split('\n')
  lines[1] = (lines[1] ?? '').replace('widgets', 'gadgets')
  await writeFile(path, lines.join('\n'))
  await expect(openWorld({ storage: await open() })).rejects.toThrow(LogDamaged)
})

test('snapshots take the place of old logs and lose nothing', async () => {
  const storage = await open(20_000)
  const first = await openWidgetWorld({ storage })
  storage.setSource(() => first.core.engine.store.state())
  for (let index = 0; index < 100; index++) await first.post(WIDGETS, widget(`w-${index}`, { image: 'x' }))
  await first.remove(`${WIDGETS}/w-7`)
  const revision = first.core.engine.store.revision()
  await first.core.close()
  const names = await readdir(folder)
  expect(names.some((name) => name.startsWith('snapshot-'))).toBe(true)
  expect(names.filter((name) => name.startsWith('log-'))).toHaveLength(1)
  const second = await openWorld({ storage: await open() })
  expect((await second.get(WIDGETS)).body.items).toHaveLength(99)
  expect(second.core.engine.store.revision()).toBeGreaterThanOrEqual(revision)
})

test('a log of any length is read completely, also lines that start in one piece and end in another', async () => {
  const recordAt = (revision: number, text: string): StoredRecord => ({
    revision,
    storageKey: '/configmaps',
    key: `default/${revision}`,
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadataOf(revision), data: { text } },
  })
  const metadataOf = (revision: number) => ({
    name: `${revision}`,
    uid: `${revision}`,
    resourceVersion: `${revision}`,
    creationTimestamp: '2026-01-01T00:00:00Z',
  })
  const megabyte = 'ä'.repeat(1_000_000)
  const lines = Array.from({ length: 20 }, (_, index) => frameOf([recordAt(index + 1, megabyte)]))
  const many = Array.from({ length: 200 }, (_, frame) =>
    frameOf(Array.from({ length: 1_000 }, (_record, index) => recordAt(21 + frame * 1_000 + index, ''))),
  )
  await writeFile(join(folder, 'log-0'), [...lines, ...many].join(''))
  const { records } = await (await open()).load()
  expect(records.length).toBe(200_020)
  expect(records.every(({ revision }, index) => revision === index + 1)).toBe(true)
  expect(records.slice(0, 20).every(({ object }) => JSON.stringify(object).includes(megabyte))).toBe(true)
})

test('one folder has one server', async () => {
  await open()
  await expect(openLogStorage({ folder, log: silentLog })).rejects.toThrow(FolderLocked)
})

test('a snapshot that was not finished is ignored: the logs before and after it hold everything', async () => {
  const configMap = (name: string, revision: number): StoredRecord => ({
    revision,
    storageKey: '/configmaps',
    key: `default/${name}`,
    object: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name,
        namespace: 'default',
        uid: name,
        resourceVersion: String(revision),
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
    },
  })
  await writeFile(join(folder, 'log-0'), frameOf([configMap('a', 1), configMap('b', 2)]))
  await writeFile(join(folder, 'log-2'), frameOf([configMap('c', 3)]))
  await writeFile(join(folder, 'partial-2'), '1234')
  const world = await openWorld({ storage: await open() })
  const list = await world.get('/api/v1/namespaces/default/configmaps')
  expect(list.body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(['a', 'b', 'c'])
  expect(world.core.engine.store.revision()).toBeGreaterThanOrEqual(3)
  expect(await readdir(folder)).not.toContain('partial-2')
})

test('after a write that failed no other succeeds', async () => {
  const failures: unknown[] = []
  const storage = await openLogStorage({ folder, log: silentLog, onFailure: (error) => void failures.push(error) })
  opened.push(storage)
  const record: StoredRecord = { revision: 1, storageKey: '/configmaps', key: 'default/a', object: undefined }
  await expect(storage.append(record)).rejects.toThrow('the storage was not loaded')
  await storage.load()
  await expect(storage.append({ ...record, revision: 2 })).rejects.toThrow('the storage was not loaded')
  expect(failures).toHaveLength(1)
})
