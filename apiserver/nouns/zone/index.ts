import { Zone } from '../../../resources/catalog/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { zoneAdmission } from './admission.ts'
import { zoneEndpoints } from './endpoints.ts'

export const zone = noun<Parts>({
  name: 'zone',
  kinds: [kind(Zone, { access: 'write', target: 'zone', admission: zoneAdmission })],
  endpoints: zoneEndpoints,
})
