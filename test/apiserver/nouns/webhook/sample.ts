import type { Samples } from '../../samples.ts'

const body = { name: 'hook', url: 'https://hooks.example.com/', events: ['server.*'] }

export const SAMPLES: Samples = {
  webhooks: async ({ owner }) => {
    const { id } = (await owner.send('POST', '/v1/account/webhooks', { body })).body['webhook']
    // It has a delivery to be listed.
    await owner.send('POST', `/v1/account/webhooks/${id}/probe`)
    return id
  },
}
