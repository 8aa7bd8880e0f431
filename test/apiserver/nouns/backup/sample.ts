import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { Backup } from '../../../../resources/backup/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { until } from '../../../eventually.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  /** No host of these tests keeps backups: this one is made with kubectl. */
  async backups({ owner, cloud, idOf }) {
    const id = newUuid(systemRandom)
    await cloud.admin.create(Backup, {
      metadata: { name: id, namespace: accountNamespace(owner.accountId) },
      spec: { storageId: await idOf('storages'), title: '', kind: 'manual' },
    })
    await until(
      'the backup to be found',
      () => owner.send('GET', `/v1/backups/${id}`),
      ({ status }) => status === 200,
    )
    return id
  },
}
