/** Fields only of servers that the platform runs for a customer. */
import { z } from 'zod'
import { CidrText, ManagedByText } from '../kit/fields.ts'

const SHARED_ADDRESSES_MAXIMUM = 32

export const ManagedBy = ManagedByText.regex(
  /^(edge|load_balancer|database|node_pool|dev_cluster):[a-z0-9][-a-z0-9.]*$/,
).describe(
  'Purpose of the server: edge:<id>, load_balancer:<id>, database:<id>, node_pool:<id> or dev_cluster:<id>. ' +
    'Written by the platform only.',
)

export const SharedAddresses = z
  .array(
    z.strictObject({
      networkId: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('Private network of the address; the public one when absent.'),
      address: CidrText.min(1).describe('IPv4 or IPv6 address, or a network in CIDR form.'),
    }),
  )
  .max(SHARED_ADDRESSES_MAXIMUM)
  .describe(
    'Additional addresses that the server may use as source, because it shares them with another machine of its ' +
      'owner. Written by the platform only.',
  )
