import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  'quota-requests': async ({ owner }) =>
    (
      await owner.send('POST', '/v1/account/quota-requests', {
        body: { name: 'routers', limit: 20, reason: 'More networks.' },
      })
    ).body['request'].id,
}
