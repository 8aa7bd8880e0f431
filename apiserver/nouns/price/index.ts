import { Price } from '../../../resources/price/index.ts'
import { exemptKind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'

export const price = noun({
  name: 'price',
  kinds: [
    exemptKind(Price, { access: 'read', because: 'only operators may write it, and its own schema validates it' }),
  ],
})
