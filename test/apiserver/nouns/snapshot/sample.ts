import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Snapshot } from '../../../../resources/snapshot/index.ts'
import { until } from '../../../eventually.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  /** No host of these tests makes disks: this one is made with kubectl. */
  async snapshots({ owner, cloud, idOf }) {
    const id = newUuid(systemRandom)
    await cloud.admin.create(Snapshot, {
      metadata: { name: id, namespace: accountNamespace(owner.accountId) },
      spec: { storageId: await idOf('storages'), title: '', labels: {} },
    })
    await until(
      'the snapshot to be found',
      () => owner.send('GET', `/v1/snapshots/${id}`),
      ({ status }) => status === 200,
    )
    return id
  },
}
