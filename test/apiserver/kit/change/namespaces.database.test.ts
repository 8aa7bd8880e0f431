import { expect, test } from 'vitest'
import { makeAccountNamespaces } from '../../../../controllers/nouns/account/index.ts'
import { Unavailable } from '../../../../domain/problem.ts'
import { Lease, Namespace, ResourceQuota } from '../../../../kit/kube/object.ts'
import type { Transport } from '../../../../kit/kube/transport.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { useDatabase } from '../../../database.ts'
import { until } from '../../../eventually.ts'
import { type Cloud, openCloud } from '../../cloud.ts'

const database = useDatabase()

test('what is made in the namespace of an account past the platform is bounded', async () => {
  const cloud = await openCloud(database.db)
  try {
    const ada = await cloud.signUp('ada@example.com')
    const body = {
      zone: cloud.zone,
      title: 'Mine',
      checksum_sha256: 'a'.repeat(64),
      source_url: 'https://images.example.com/disk',
    }
    expect((await ada.send('POST', '/v1/custom-images', { body })).status).toBe(202)
    const namespace = accountNamespace(ada.accountId)
    const { spec } = (await cloud.admin.get(ResourceQuota, { namespace, name: 'svccloud' })) ?? {}
    expect(spec?.hard).toMatchObject({ 'count/secrets': '10000', 'count/leases.coordination.k8s.io': '100' })
    const make = (name: string) => cloud.admin.create(Lease, { metadata: { namespace, name }, spec: {} })
    for (let number = 0; number < 100; number++) await make(`l${number}`)
    await expect(make('one-more')).rejects.toThrow('exceeded quota: svccloud')
    // Its own kinds are counted by the platform.
    expect((await ada.send('POST', '/v1/custom-images', { body })).status).toBe(202)
  } finally {
    await cloud.close()
  }
})

const isWhole = async ({ admin }: Cloud, accountId: string): Promise<boolean> => {
  const name = accountNamespace(accountId)
  const bounds = await admin.get(ResourceQuota, { namespace: name, name: 'svccloud' })
  return bounds !== undefined && (await admin.get(Namespace, { name })) !== undefined
}
const unmade = async ({ db }: Cloud): Promise<readonly string[]> =>
  (await db.selectFrom('account').select('id').where('namespace_made_at', 'is', null).execute()).map(({ id }) => id)

test('it is made with the account', async () => {
  const cloud = await openCloud(database.db)
  try {
    const { accountId } = await cloud.signUp('grace@example.com')
    await until(
      'the namespace',
      () => isWhole(cloud, accountId),
      (made) => made,
    )
    await until(
      'it to be noted',
      () => unmade(cloud),
      (ids) => !ids.includes(accountId),
    )
  } finally {
    await cloud.close()
  }
})

test('an account that is opened while Kubernetes is away gets its namespace from the controllers later', async () => {
  let isAway = true
  let asked = 0
  const disturb =
    (serve: Transport): Transport =>
    (request) => {
      asked++
      return isAway ? Promise.reject(new Unavailable('Kubernetes')) : serve(request)
    }
  const cloud = await openCloud(database.db, { disturb })
  try {
    const one = await cloud.signUp('one@example.com')
    expect(one.accountId).toMatch(/^[0-9a-f-]{36}$/)
    const parts = { db: cloud.db, store: cloud.store, clock, log }
    await expect(makeAccountNamespaces(parts)).rejects.toThrow('the Kubernetes API is not available')
    expect(await unmade(cloud)).toContain(one.accountId)
    expect(await isWhole(cloud, one.accountId)).toBe(false)
    isAway = false
    await makeAccountNamespaces(parts)
    expect(await isWhole(cloud, one.accountId)).toBe(true)
    expect(await unmade(cloud)).toEqual([])
    const before = asked
    await makeAccountNamespaces(parts)
    expect(asked, 'of what is made nobody is asked again').toBe(before)
  } finally {
    await cloud.close()
  }
})
