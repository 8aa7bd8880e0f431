import { createLoadBalancer } from '../../../../resources/load-balancer/index.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async 'load-balancers'({ owner, cloud, idOf }) {
    const body = {
      ...createLoadBalancer.example,
      zone: cloud.zone,
      network_id: await idOf('networks'),
      public_ipv4: false,
    }
    return (await owner.send('POST', '/v1/load-balancers', { body })).body['load_balancer'].id
  },
}
