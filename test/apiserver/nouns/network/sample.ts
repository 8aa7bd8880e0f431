import { createNetwork } from '../../../../resources/network/index.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async networks({ owner, cloud }) {
    const body = { ...createNetwork.example, zone: cloud.zone }
    return (await owner.send('POST', '/v1/networks', { body })).body['network'].id
  },
}
