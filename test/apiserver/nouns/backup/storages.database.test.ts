/** Storages from backups, and the copies of their backups. Refusals are in `test/changes/refusals/`. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { COPY_ZONE, openWorld, type World } from './world.ts'

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

const from = (source_backup_id: string) => ada.send('POST', '/v1/storages', { body: { source_backup_id } })

test('a storage is as large as its backup, on a host that reaches it', async () => {
  const reach = (has_backups: boolean) => cloud.db.updateTable('node_capacity').set({ has_backups }).execute()
  const before = await world.contents()
  const id = await world.backup()
  const made = await world.contents()
  expect(made).not.toEqual(before)
  await reach(false)
  expect((await from(id)).body).toMatchObject({ status: 503, reason: 'no_capacity' })
  expect(await world.contents()).toEqual(made)
  await reach(true)
  expect(await from(id)).toMatchObject({
    status: 202,
    body: { storage: { zone: cloud.zone, size_gibibytes: 2, source: { kind: 'backup' } } },
  })
})

test('backups are copied to another zone, and no longer', async () => {
  const path = `/v1/storages/${await world.storage()}`
  const set = async (zone: string | null) =>
    (await ada.send('PATCH', path, { body: { backup_copy_zone: zone } })).body['storage'].backup_copy_zone
  expect([await set(COPY_ZONE), await set(null)]).toEqual([COPY_ZONE, null])
})
