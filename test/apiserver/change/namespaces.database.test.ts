import { expect, test } from 'vitest'
import { Lease, ResourceQuota } from '../../../kit/kube/object.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { useDatabase } from '../../database.ts'
import { openCloud } from '../cloud.ts'

const database = useDatabase()

test('what is made in the namespace of an account past the platform is bounded', async () => {
  const cloud = await openCloud(database.db)
  try {
    const ada = await cloud.signUp('ada@example.com')
    const body = {
      ...{ zone: cloud.zone, title: 'Mine', checksum_sha256: 'a'.repeat(64) },
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
