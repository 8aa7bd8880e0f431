import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  'support-consents': async ({ owner }) =>
    (await owner.send('POST', '/v1/account/support-consents', { body: { mode: 'read_only' } })).body['support_consent']
      .id,
}
