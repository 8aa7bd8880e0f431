import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  members: async ({ owner }) => owner.userId,
  async invitations({ owner }) {
    const body = { email: 'invited@example.com', role: 'viewer' }
    return (await owner.send('POST', '/v1/account/invitations', { body })).body['invitation'].id
  },
}
