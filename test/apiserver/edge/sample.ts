import { Zone } from '../../../resources/catalog/index.ts'
import { createEdge } from '../../../resources/edge/index.ts'
import type { Samples } from '../samples.ts'

export const SAMPLES: Samples = {
  async edges({ owner, cloud, idOf }) {
    await cloud.admin.patch(Zone, { name: cloud.zone }, { status: { builtTemplates: ['managed-machine'] } }, 'status')
    await idOf('ssh-keys')
    const body = { ...createEdge.example, network_id: await idOf('networks') }
    return (await owner.send('POST', '/v1/edges', { body })).body['edge'].id
  },
}
