import { PUBLIC_KEY } from '../../cloud.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  'ssh-keys': async ({ owner }) =>
    (await owner.send('POST', '/v1/ssh-keys', { body: { name: 'key', public_key: PUBLIC_KEY } })).body['ssh_key'].id,
}
