import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async tokens({ owner }) {
    await owner.token('read')
    return (await owner.send('GET', '/v1/account/tokens')).body['items'][0].id
  },
}
