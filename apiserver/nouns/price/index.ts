/** Prices: written by operators, read by everybody. */
import { listPrices } from '../../../db/billing/index.ts'
import { TRANSFER_PRICE_MILLICENTS_PER_GIBIBYTE } from '../../../domain/billing/transfer.ts'
import { TRANSFER_RESOURCE_TYPE } from '../../../domain/billing/rules.ts'
import { isBilledType } from '../../../domain/billing/units.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import * as routes from '../../../resources/price/index.ts'
import { exemptKind } from '../../kit/admission/kind.ts'
import { completeList } from '../../kit/list/page.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'

/** From the table by which hours are metered, and the constant by which traffic is billed. */
const priceEndpoints = ({ db }: Pick<Parts, 'db'>): readonly Endpoint[] => [
  customerEndpoint(routes.listPrices, async ({ now }) =>
    completeList(
      [...(await listPrices(db, now)), TRANSFER]
        .flatMap(({ resourceType, plan, unitMillicents: monthlyMillicents, validFrom }) =>
          isBilledType(resourceType) ? [{ resourceType, plan, monthlyMillicents, validFrom }] : [],
        )
        .map(routes.toPriceLine),
    ),
  ),
]

const TRANSFER = {
  resourceType: TRANSFER_RESOURCE_TYPE,
  plan: '',
  unitMillicents: TRANSFER_PRICE_MILLICENTS_PER_GIBIBYTE,
  validFrom: new Date(0),
}

export const price = noun<Pick<Parts, 'db'>>({
  name: 'price',
  kinds: [
    exemptKind(routes.Price, {
      access: 'read',
      because: 'only operators may write it, and its own schema validates it',
    }),
  ],
  endpoints: priceEndpoints,
})
