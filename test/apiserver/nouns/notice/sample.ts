import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async notices({ owner }) {
    const expires_at = new Date(Date.now() + 86_400_000).toISOString()
    await owner.send('POST', '/v1/account/tokens', { body: { name: 'soon', scope: 'read', expires_at } })
    return (await owner.send('GET', '/v1/notices')).body['items'][0].id
  },
}
