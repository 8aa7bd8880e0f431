/** Two real RADOS gateways of one zone, of which one dies. The cluster is its own: gateways of other files would wait
 *  as well. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newSecret, newTenantKeys } from '../../../integrations/object-storage/keys.ts'
import { openGateway } from '../../../integrations/object-storage/rgw.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { useCeph } from '../../ceph.ts'
import { startGateway } from '../../gateway.ts'

const own = useCeph(['rack-0'])
let gateways: readonly Awaited<ReturnType<typeof startGateway>>[]

beforeAll(async () => {
  const { administration } = own.ceph
  gateways = [await startGateway(administration), await startGateway(administration)]
})
afterAll(() => Promise.all((gateways ?? []).map((gateway) => gateway.stop())))

test('when a gateway of the zone dies, a tenant is still made and changed by another one', async () => {
  const [one, other] = gateways
  if (one === undefined || other === undefined) throw new Error('two gateways were started')
  const control = openGateway(one.address)
  const settings = { ...newTenantKeys(systemRandom), quotaBytes: 1024 ** 3, isSuspended: false, isFrozen: false }
  await control.putTenant('account-1.before', settings)
  await other.kill()
  const changed = { ...settings, secretAccessKey: newSecret(systemRandom) }
  const more = { ...newTenantKeys(systemRandom), buckets: ['archive'] }
  await Promise.all([
    control.putTenant('account-1.before', changed),
    control.putTenant('account-2.behind', { ...settings, ...more }),
  ])
  expect(await control.getTenant('account-2.behind')).toMatchObject({ bucketCount: 1 })
})
