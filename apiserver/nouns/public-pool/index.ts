import { PublicPool } from '../../../resources/public-pool/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { publicPoolAdmission } from './admission.ts'
import { publicPoolEndpoints } from './endpoints.ts'

export const publicPool = noun<Parts>({
  name: 'public_pool',
  kinds: [kind(PublicPool, { access: 'write', target: 'public_pool', admission: publicPoolAdmission })],
  endpoints: publicPoolEndpoints,
})
