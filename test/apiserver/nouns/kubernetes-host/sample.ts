import { ensureKubernetesHosts } from '../../../../db/kubernetes-host/index.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async 'kubernetes-hosts'({ cloud }) {
    const [host] = await ensureKubernetesHosts(cloud.db, ['eu-1'], {
      now: new Date(),
      newId: () => newUuid(systemRandom),
    })
    return host?.id ?? ''
  },
}
