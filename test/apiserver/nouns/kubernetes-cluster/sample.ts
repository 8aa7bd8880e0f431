import { createKubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async 'kubernetes-clusters'({ owner, cloud, idOf }) {
    const body = { ...createKubernetesCluster.example, zone: cloud.zone, network_id: await idOf('networks') }
    return (await owner.send('POST', '/v1/kubernetes-clusters', { body })).body['kubernetes_cluster'].id
  },
}
