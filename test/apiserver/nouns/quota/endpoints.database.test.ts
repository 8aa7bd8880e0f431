import { afterAll, beforeAll, expect, test } from 'vitest'
import { DEFAULT_QUOTAS } from '../../../../domain/account/quota.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
})
afterAll(() => cloud.close())

const listed = async (): Promise<readonly { readonly name: string; readonly scope: string; readonly used: number }[]> =>
  (await ada.send('GET', '/v1/account/quotas')).body['items']

test('every quota that is enforced is listed, with where it counts', async () => {
  const quotas = await listed()
  expect(quotas.map(({ name }) => name).toSorted()).toEqual(Object.keys(DEFAULT_QUOTAS).toSorted())
  expect(quotas.filter(({ scope }) => scope === 'zone').map(({ name }) => name)).toEqual(['object_storage_gibibytes'])
})

test('of one that counts in each zone, the fullest zone is shown', async () => {
  const store = (zone: string, bytes: number) =>
    database.db
      .insertInto('object_storage')
      .values({
        account_id: ada.accountId,
        id: `os-${zone}`,
        zone,
        access_key_id: `KEY${zone.replaceAll('-', '')}`,
        sealed_secret: 'sealed',
        bucket_prefix: `${zone}-`,
        backend: 'svc-s3-single',
        used_bytes: bytes,
        object_count: 1,
        generation: 1,
        created_at: new Date(),
      })
      .execute()
  await store('eu-1a', 1)
  await store('eu-1b', 5 * 1024 ** 3 + 1)
  expect(await listed()).toContainEqual(
    expect.objectContaining({ name: 'object_storage_gibibytes', used: 6, limit: 1_024 }),
  )
})
