import { Template } from '../../../resources/catalog/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { templateAdmission } from './admission.ts'
import { templateEndpoints } from './endpoints.ts'

export const template = noun<Parts>({
  name: 'template',
  kinds: [kind(Template, { access: 'write', target: 'template', admission: templateAdmission })],
  endpoints: templateEndpoints,
})
