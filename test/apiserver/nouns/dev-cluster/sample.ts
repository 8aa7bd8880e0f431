import { MANAGED_TEMPLATES } from '../../../../domain/managed-machine/rules.ts'
import { mirrorPool } from '../../../../db/public-pool/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { createDevCluster } from '../../../../resources/dev-cluster/index.ts'
import type { Cloud } from '../../cloud.ts'
import type { Samples } from '../../samples.ts'

export const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPt6pB8hXCcGUnTBPfo1sMHiSTcyH8bIVrfzBNAVKuUf ada@example.com'

/** Its zone has their image, and prefixes to give. */
export async function offerDevClusters(cloud: Cloud): Promise<void> {
  const status = { builtTemplates: [...MANAGED_TEMPLATES] }
  await cloud.admin.patch(Zone, { name: cloud.zone }, { status }, 'status')
  const pool = { family: 'ipv6', zone: cloud.zone, state: 'active', use: 'server_ipv6_prefix' } as const
  const mirrored = { ...pool, id: 'dev-clusters', cidr: '2001:db8:de::/48' }
  await cloud.db.transaction().execute((tx) => mirrorPool(tx, mirrored))
}

export const SAMPLES: Samples = {
  async 'dev-clusters'({ owner, cloud }) {
    await offerDevClusters(cloud)
    const body = { ...createDevCluster.example, zone: cloud.zone, ssh_keys: [KEY] }
    return (await owner.send('POST', '/v1/dev-clusters', { body })).body['dev_cluster'].id
  },
}
