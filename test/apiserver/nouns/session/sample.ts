import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  sessions: async ({ owner }) => (await owner.send('GET', '/v1/account/sessions')).body['items'][0].id,
}
