import { Zone } from '../../resources/catalog/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { zoneAdmission } from './admission.ts'
import { zoneEndpoints } from './endpoints.ts'

export const zone = noun<Parts>({
  name: 'zone',
  kinds: [kind(Zone, { access: 'write', target: 'zone', admission: zoneAdmission })],
  endpoints: zoneEndpoints,
})
