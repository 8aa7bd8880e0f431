import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  'server-groups': async ({ owner, cloud }) =>
    (await owner.send('POST', '/v1/server-groups', { body: { name: 'group', zone: cloud.zone } })).body['server_group']
      .id,
}
