import { PublicPool } from '../../resources/public-pool/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { publicPoolAdmission } from './admission.ts'
import { publicPoolEndpoints } from './endpoints.ts'

export const publicPool = noun<Parts>({
  name: 'public_pool',
  kinds: [kind(PublicPool, { access: 'write', target: 'public_pool', admission: publicPoolAdmission })],
  endpoints: publicPoolEndpoints,
})
