/** A backup is an operation of its storage: it names it, and the storage shows it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordOperation } from '../../../../db/operation/index.ts'
import { finished } from '../../../../controllers/kit/operation/record.ts'
import { pendingProgress } from '../../../../controllers/kit/operation/progress.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Backup } from '../../../../resources/backup/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { useDatabase } from '../../../database.ts'
import { until } from '../../../eventually.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { openWorld, type World } from './world.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let world: World
beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  world = await openWorld(cloud, ada)
})
afterAll(() => cloud.close())

test('a backup that is being made is the active operation of its storage, in every view, and in history', async () => {
  const storageId = await world.storage()
  const reply = await ada.send('POST', `/v1/storages/${storageId}/backups`, { body: {} })
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  // as the contract has it
  const { operation, backup } = reply.body as { operation: { id: string }; backup: { id: string } }
  const named = { kind: 'storage.backup', storage_id: storageId, backup_id: backup.id }
  expect(operation).toMatchObject(named)
  const key = { namespace: accountNamespace(ada.accountId), name: operation.id }
  const readHere = async () => (await ada.send('GET', `/v1/operations/${operation.id}`)).body['operation']
  expect(await readHere()).toMatchObject(named)
  const storage = await until(
    'the storage to show it',
    () => ada.send('GET', `/v1/storages/${storageId}`),
    ({ body }) => body['storage'].active_operation !== null,
  )
  expect(storage.body['storage'].active_operation).toMatchObject({ ...named, id: operation.id })

  const object = await cloud.admin.get(Operation, key)
  const stanza = (await cloud.admin.get(Backup, { ...key, name: backup.id }))?.spec.operation
  if (object === undefined || stanza === undefined) throw new Error('there is no operation')
  const ended = { ...pendingProgress(stanza), status: 'failed', error: 'x' } as const
  await recordOperation(cloud.db, ada.accountId, finished(object, ended, [], new Date()))
  await cloud.admin.delete(Operation, key)
  expect(await readHere()).toMatchObject(named)
})

test('a backup is claimed for the storage that was judged, whatever a cache has of it', async () => {
  const storageId = await world.storage()
  const key = { namespace: accountNamespace(ada.accountId), name: storageId }
  const { metadata, ...found } = (await cloud.admin.get(Storage, key)) ?? expect.fail('no storage')
  const used = async () =>
    (await listQuotas(cloud.db, ada.accountId)).find(({ name }) => name === 'backup_gibibytes')?.used ?? 0
  const before = await used()
  const { finalizers: _finalizers, ...rest } = metadata
  const gone = { ...rest, resourceVersion: '999999999', deletionTimestamp: '2026-01-01T00:00:00Z' }
  cloud.caches.of(Storage).apply({ ...found, metadata: gone })
  expect((await ada.send('POST', `/v1/storages/${storageId}/backups`, { body: {} })).status).toBe(202)
  expect((await used()) - before).toBe(2)
})
