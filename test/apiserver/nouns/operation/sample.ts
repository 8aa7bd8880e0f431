import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  operations: async ({ owner, idOf }) =>
    (await owner.send('GET', `/v1/operations?resource=server:${await idOf('servers')}`)).body['items'][0].id,
}
