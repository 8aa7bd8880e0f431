import { mirrorPool } from '../../../../db/public-pool/index.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async 'floating-ips'({ owner, cloud }) {
    const { zone } = cloud
    const pool = {
      id: 'floating',
      zone,
      family: 'ipv4',
      cidr: '203.0.113.0/24',
      use: 'floating_ipv4',
      state: 'active',
    } as const
    await cloud.db.transaction().execute((tx) => mirrorPool(tx, pool))
    return (await owner.send('POST', '/v1/floating-ips', { body: { zone } })).body['floating_ip'].id
  },
}
