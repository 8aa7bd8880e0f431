/** The state of an account in one answer: public shape and route. */
import { z } from 'zod'
import { ACCOUNT_NOUNS, type AccountNoun } from '../../domain/account/quota.ts'
import { AuditIntegrity } from '../audit/index.ts'
import { UsageSummary } from '../billing/index.ts'
import { DateTime } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { OperationView } from '../operation/index.ts'
import { AccountStanding } from '../payment/index.ts'
import { Quota } from '../quota/index.ts'

/** What is counted, in the order of the answer. */
export const COUNTED_TYPES = ACCOUNT_NOUNS
export type CountedType = AccountNoun

const Count = z.int().min(0)
const Type = z.enum(COUNTED_TYPES)

const OverviewProblem = z.strictObject({
  type: Type.describe('Type of the resource.'),
  id: z.string().describe('Id of the resource.'),
  name: z.string().describe('Name by which people know the resource.'),
  state: z.string().nullable().describe('State of the resource; null when it has none.'),
  reason: z.string().describe('Human-readable description of the problem.'),
})
export type OverviewProblem = z.infer<typeof OverviewProblem>

export const Overview = z
  .strictObject({
    resources: z
      .array(
        z.strictObject({
          type: Type.describe('Type of the resources.'),
          total: Count.describe('Number of resources as their list shows them; of playgrounds, those that run.'),
          states: z.record(z.string(), Count).describe('Number of resources by state; empty for types without states.'),
        }),
      )
      .describe('Number of resources of each type.'),
    operations: z
      .strictObject({
        total: Count.describe('Number of operations that are pending or running.'),
        items: z.array(OperationView).describe('The newest twenty, without their events.'),
      })
      .describe('Operations that have not ended.'),
    problems: z
      .strictObject({
        total: Count.describe('Number of resources that need attention.'),
        items: z.array(OverviewProblem).describe('The first fifty.'),
      })
      .describe(
        'Resources in error or not healthy, damaged backups, failing archives, and webhooks that send nothing.',
      ),
    maintenance: z
      .strictObject({
        total: Count.describe('Number of servers with announced work.'),
        items: z
          .array(
            z.strictObject({
              server_id: z.string(),
              hostname: z.string(),
              planned_at: DateTime.describe('Time from which the server is moved.'),
              reason: z.string().describe('Human-readable reason.'),
              action: z.enum(['live', 'cold']).describe('Whether the server may have to restart.'),
            }),
          )
          .describe('The first fifty, the earliest first.'),
      })
      .describe('Announced work on the hosts of servers.'),
    quotas: z.array(Quota).describe('Quotas of which at least 80 % are used.'),
    audit: AuditIntegrity,
    cost: UsageSummary.omit({ resources: true, daily: true })
      .optional()
      .describe('Cost of the month, and credits; absent without the permission billing.read.'),
    standing: AccountStanding.optional().describe(
      'Whether the account may create billable resources; absent without the permission billing.read.',
    ),
  })
  .meta({ id: 'Overview' })
export type Overview = z.infer<typeof Overview>

const overview = routesUnder({ path: '/v1/overview' })

export const getOverview = overview.get('get_overview', '', {
  summary: 'Get the state of the account',
  description: 'Counts, work in progress and what needs attention, in one answer. Details are in the lists.',
  answers: { 200: Overview },
})

export const OVERVIEW_ROUTES = [getOverview] as const
