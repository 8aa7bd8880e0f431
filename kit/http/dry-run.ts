/** Dry runs of requests: `?dry_run=true` answers what the request would be answered, or refuses it for the same
 *  reasons, and changes nothing. */
import { z } from 'zod'
import type { DryRunContext } from '../sys/dry-run.ts'
import type { Answer, Call, Customer } from './call.ts'
import type { Route } from './route.ts'

/** Apart from `application/json`, so that generated clients keep their types of ordinary answers. */
export const DRY_RUN_MEDIA_TYPE = 'application/vnd.svccloud.dry-run+json'

const Open = z.record(z.string(), z.unknown())

export const DryRun = z
  .strictObject({
    dry_run: z.literal(true).describe('Nothing was changed, claimed or recorded.'),
    price: z
      .strictObject({
        monthly_millicents: z.int().describe('Change of the costs per month, in thousandths of a euro cent.'),
        hourly_millicents: z.int().describe('Change of the costs per hour, in thousandths of a euro cent.'),
        lines: z
          .array(
            z.strictObject({
              resource_type: z.string().describe('Resource type, as in usage and invoices.'),
              plan: z.string().describe('Plan or tier; empty where there is none.'),
              quantity: z.int().describe('Units: GiB, or pieces. Negative for what would no longer be billed.'),
              monthly_millicents: z.int().describe('Costs per month, in thousandths of a euro cent.'),
            }),
          )
          .describe('The parts of the change.'),
      })
      .nullable()
      .describe(
        'How the costs would change; null where they stay the same. Traffic is not included, and neither is what ' +
          'is billed by its measured size: snapshots, backups, custom images and stored objects.',
      ),
    would_claim: z
      .array(
        z.strictObject({
          name: z.string().describe('Name of the quota.'),
          amount: z.int().describe('How much would be taken; negative for what would be released.'),
          used: z.int().describe('How much is used now.'),
          limit: z.int().describe('Limit of the quota.'),
        }),
      )
      .describe('Quotas that the request would change, by name.'),
    would: Open.nullable().describe(
      'Body of the answer, without credentials; null for an answer without a body. Ids and addresses of new ' +
        'resources are examples: the real request gets others.',
    ),
    manifest: Open.nullable().describe(
      'The resource as an object for kubectl; a List of several; null where the request writes none.',
    ),
  })
  .meta({ id: 'DryRun' })
export type DryRun = z.infer<typeof DryRun>

/** What the application knows of a dry run in addition to the answer. */
export type DescribeDryRun = (
  dryRun: DryRunContext,
  call: Call<Route, Customer>,
) => Promise<Omit<DryRun, 'dry_run' | 'would'>>

/** The body of the answer, as the dry run shows it. */
export function wouldAnswer({ secretFields }: Route, answer: Answer): DryRun['would'] {
  const body: unknown =
    'json' in answer ? JSON.parse(Buffer.from(answer.json).toString()) : 'body' in answer ? answer.body : undefined
  if (typeof body !== 'object' || body === null) return null
  return Object.fromEntries(Object.entries(body).filter(([name]) => !secretFields.includes(name)))
}
