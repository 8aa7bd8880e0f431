import type { Samples } from '../../samples.ts'

/** Paths name it by its zone. */
export const SAMPLES: Samples = {
  'object-storage': async ({ owner, cloud }) => {
    await owner.send('POST', '/v1/object-storage', { body: { zone: cloud.zone } })
    return cloud.zone
  },
}
