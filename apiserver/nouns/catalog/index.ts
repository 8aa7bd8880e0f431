import { Plan, Region } from '../../../resources/catalog/index.ts'
import { exemptKind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { catalogEndpoints } from './endpoints.ts'

export const catalog = noun<Pick<Parts, 'caches'>>({
  name: 'catalog',
  kinds: [Region, Plan].map((resource) =>
    exemptKind(resource, { access: 'read', because: 'only operators may write it, and its own schema validates it' }),
  ),
  endpoints: catalogEndpoints,
})
