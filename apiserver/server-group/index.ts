import { ServerGroup } from '../../resources/server-group/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { serverGroupAdmission } from './admission.ts'
import { serverGroupEndpoints } from './endpoints.ts'

export const serverGroup = noun<Parts>({
  name: 'server_group',
  kinds: [kind(ServerGroup, { access: 'write', admission: serverGroupAdmission })],
  endpoints: serverGroupEndpoints,
})
