import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async routers({ owner, cloud }) {
    return (await owner.send('POST', '/v1/routers', { body: { zone: cloud.zone, name: 'out' } })).body['router'].id
  },
}
