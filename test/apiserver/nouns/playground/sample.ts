import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  playgrounds: async ({ owner }) => (await owner.send('POST', '/v1/playgrounds', { body: {} })).body['playground'].id,
}
