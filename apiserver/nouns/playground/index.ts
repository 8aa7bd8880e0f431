import { Playground } from '../../../resources/playground/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { playgroundAdmission } from './admission.ts'
import { playgroundEndpoints } from './endpoints.ts'

export const playground = noun<Parts>({
  name: 'playground',
  kinds: [kind(Playground, { access: 'write', admission: playgroundAdmission })],
  endpoints: playgroundEndpoints,
})
