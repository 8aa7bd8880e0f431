/** Operators' prices for everything without a plan: storage, addresses, and other usage billed by unit. What customers
 *  see of them, and of the prices of plans. */
import { z } from 'zod'
import { type BilledType, FREE_UNITS, PRICE_UNITS, unitOf } from '../../domain/billing/units.ts'
import { resource } from '../kit/define.ts'
import { completeListOf, Conditions, DateTime, ObservedGeneration } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { AGE } from '../kit/columns.ts'

export const Price = resource({
  kind: 'Price',
  plural: 'prices',
  shortNames: ['prc'],
  scope: 'Cluster',
  description: [
    'Price of one unit of a resource type per month, from a given time. It never changes, because hours are ' +
      'billed by it: create another one that is valid from a later time.',
    'Usage without a price is not billed. The price of servers is in their plan.',
  ].join(' '),
  spec: z
    .strictObject({
      resourceType: z
        .string()
        .regex(/^[a-z][a-z0-9_]*$/)
        .max(63)
        .describe(
          'Resource type as in usage and invoices: storage, snapshot, backup or custom_image (per GiB), ' +
            'public_ipv4, floating_ip, edge, load_balancer or kubernetes_cluster (each).',
        ),
      plan: z
        .string()
        .max(63)
        .default('')
        .describe('Plan or tier of the resource: the tier of a storage, empty for types without one.'),
      monthlyMillicents: z
        .int()
        .min(0)
        .max(1_000_000_000)
        .describe('Price per unit and month in thousandths of a euro cent.'),
      validFrom: z.string().max(64).meta({ format: 'date-time' }).describe('Start of its validity, RFC 3339.'),
    })
    .describe('The price, what it applies to, and since when.'),
  status: z
    .strictObject({ observedGeneration: ObservedGeneration, conditions: Conditions.optional() })
    .describe('Observed state. Written by its controller.'),
  columns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.resourceType' },
    { name: 'Plan', type: 'string', jsonPath: '.spec.plan' },
    { name: 'Millicents/month', type: 'integer', jsonPath: '.spec.monthlyMillicents' },
    { name: 'From', type: 'string', jsonPath: '.spec.validFrom' },
    AGE,
  ],
  fixed: ['resourceType', 'plan', 'monthlyMillicents', 'validFrom'],
  rules: [{ rule: "self.spec.resourceType != 'server'", message: 'the price of servers is that of their plan' }],
})
export type PriceSpec = z.infer<typeof Price.spec>

/** The price of one billed unit in a month. */
const PriceLine = z
  .strictObject({
    resource_type: z.string().describe('Type of the resource, as in usage and invoices.'),
    plan: z.string().describe('Plan or tier; empty when the resource has none.'),
    unit: z
      .enum(PRICE_UNITS)
      .describe(
        'each: one resource. gibibyte: a GiB that is stored. gibibyte_transmitted: a GiB that is sent in the month.',
      ),
    monthly_millicents: z.int().min(0).describe('Price of one unit and month in thousandths of a cent.'),
    free_units: z.int().min(0).describe('Units that cost nothing in a month; of transfer, for each server.'),
    valid_from: DateTime.describe('Start of its validity; 1970-01-01T00:00:00.000Z when nothing was valid before.'),
  })
  .meta({ id: 'PriceLine' })

const prices = routesUnder({ path: '/v1/prices' })

export const listPrices = prices.get('list_prices', '', {
  summary: 'List prices',
  description:
    'The prices by which usage and invoices are computed: those that are valid now, and announced ones. Everything ' +
    'without a line is free. Databases, clusters, edges and load balancers also cost the plans of their machines, ' +
    'which are lines of the type server. A month costs at most monthly_millicents, an hour a 730th of it.',
  answers: { 200: completeListOf(PriceLine) },
})

export const PRICE_ROUTES = [listPrices] as const

/** `monthlyMillicents` is of one unit. */
export const toPriceLine = (price: {
  readonly resourceType: BilledType
  readonly plan: string
  readonly monthlyMillicents: number
  readonly validFrom: Date
}): z.infer<typeof PriceLine> => ({
  resource_type: price.resourceType,
  plan: price.plan,
  unit: unitOf(price.resourceType),
  monthly_millicents: price.monthlyMillicents,
  free_units: FREE_UNITS[price.resourceType] ?? 0,
  valid_from: price.validFrom.toISOString(),
})
