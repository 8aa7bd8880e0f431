import { MANAGED_TEMPLATES } from '../../../../domain/managed-machine/rules.ts'
import { mirrorPool } from '../../../../db/public-pool/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { createEdge } from '../../../../resources/edge/index.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async edges({ owner, cloud, idOf }) {
    await cloud.admin.patch(
      Zone,
      { name: cloud.zone },
      { status: { builtTemplates: [...MANAGED_TEMPLATES] } },
      'status',
    )
    const pool = { family: 'ipv4', zone: cloud.zone, state: 'active', use: 'server_ipv4' } as const
    const mirrored = { ...pool, id: 'edges', cidr: '198.51.100.128/28' }
    await cloud.db.transaction().execute((tx) => mirrorPool(tx, mirrored))
    await idOf('ssh-keys')
    const body = { ...createEdge.example, network_id: await idOf('networks') }
    return (await owner.send('POST', '/v1/edges', { body })).body['edge'].id
  },
}
