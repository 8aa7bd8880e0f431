import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async servers({ owner, cloud, idOf }) {
    await idOf('ssh-keys') // of which a server needs one
    const body = { zone: cloud.zone, hostname: 'web', plan: 'tiny', template: 'tiny-linux' }
    return (await owner.send('POST', '/v1/servers', { body })).body['server'].id
  },
}
