import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  storages: async ({ owner, cloud }) =>
    (await owner.send('POST', '/v1/storages', { body: { zone: cloud.zone, size_gibibytes: 1 } })).body['storage'].id,
}
