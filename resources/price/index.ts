/** Operators' prices for everything without a plan: storage, addresses, and other usage billed by unit. */
import { z } from 'zod'
import { fixed, resource } from '../kit/define.ts'
import { Conditions, ObservedGeneration } from '../kit/shapes.ts'

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
            'public_ipv4, floating_ip, edge, load_balancer or kubernetes_cluster (each). Cannot be changed.',
        ),
      plan: z
        .string()
        .max(63)
        .default('')
        .describe(
          'Plan or tier of the resource: the tier of a storage, empty for types without one. Cannot be changed.',
        ),
      monthlyMillicents: z
        .int()
        .min(0)
        .max(1_000_000_000)
        .describe('Price per unit and month in thousandths of a euro cent. Cannot be changed.'),
      validFrom: z
        .string()
        .max(64)
        .meta({ format: 'date-time' })
        .describe('Start of its validity, RFC 3339. Cannot be changed.'),
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
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  rules: [
    ...['resourceType', 'plan', 'monthlyMillicents', 'validFrom'].map(fixed),
    { rule: "self.spec.resourceType != 'server'", message: 'the price of servers is that of their plan' },
  ],
})
export type PriceSpec = z.infer<typeof Price.spec>
