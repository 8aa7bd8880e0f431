import { Playground } from '../../resources/playground/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { playgroundAdmission } from './admission.ts'
import { playgroundEndpoints } from './endpoints.ts'

export const playground = noun<Parts>({
  name: 'playground',
  kinds: [kind(Playground, { access: 'write', admission: playgroundAdmission })],
  endpoints: playgroundEndpoints,
})
