import { MANAGED_TEMPLATES } from '../../../../domain/managed-machine/rules.ts'
import { Plan, Zone } from '../../../../resources/catalog/index.ts'
import { createDatabase } from '../../../../resources/database/index.ts'
import type { Samples } from '../../samples.ts'

const PLAN = {
  family: 'cloud_native',
  cores: 1,
  memoryMebibytes: 2048,
  storageGibibytes: 10,
  priceMonthlyCents: 1200,
} as const

export const SAMPLES: Samples = {
  async databases({ owner, cloud, idOf }) {
    const builtTemplates = [...MANAGED_TEMPLATES]
    await cloud.admin.patch(Zone, { name: cloud.zone }, { status: { builtTemplates } }, 'status')
    await cloud.admin.apply(Plan, { metadata: { name: 'db-1c-2g' }, spec: PLAN })
    const body = { ...createDatabase.example, zone: cloud.zone, network_id: await idOf('networks') }
    return (await owner.send('POST', '/v1/databases', { body })).body['database'].id
  },
}
