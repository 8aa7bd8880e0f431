/** What operators ask for what has no plan: storage, addresses, and whatever else is billed by the unit. */
import { z } from 'zod'
import { fixed, resource } from '../kit/define.ts'
import { Conditions, ObservedGeneration } from '../kit/shapes.ts'

export const Price = resource({
  kind: 'Price',
  plural: 'prices',
  shortNames: ['prc'],
  scope: 'Cluster',
  description: [
    'What one unit of a kind of resource costs in a month, from some time on. It is never changed, because hours are ' +
      'billed by it: make another one that is valid from a later time.',
    'What has no price is not billed. Servers cost what their plan says.',
  ].join(' '),
  spec: z
    .strictObject({
      resourceType: z
        .string()
        .regex(/^[a-z][a-z0-9_]*$/)
        .max(63)
        .describe(
          'What it is the price of, as usage and invoices name it: storage, snapshot, backup or custom_image (by ' +
            'GiB), public_ipv4, floating_ip, edge, load_balancer or kubernetes_cluster (each). Cannot be changed.',
        ),
      plan: z
        .string()
        .max(63)
        .default('')
        .describe('Plan or tier of the resource; of a storage its tier, empty for what has none. Cannot be changed.'),
      monthlyMillicents: z
        .int()
        .min(0)
        .max(1_000_000_000)
        .describe('Price of one unit and month, in thousandths of a euro cent. Cannot be changed.'),
      validFrom: z
        .string()
        .max(64)
        .meta({ format: 'date-time' })
        .describe('From when on hours are billed by it, RFC 3339. Cannot be changed.'),
    })
    .describe('What costs how much from when on.'),
  status: z
    .strictObject({ observedGeneration: ObservedGeneration, conditions: Conditions.optional() })
    .describe('What is known of it. Written by its controller.'),
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
