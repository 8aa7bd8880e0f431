/** Invoices and failed payments, for the staff. */
import * as routes from '../../../resources/invoice-run/index.ts'
import { notFound } from '../../../domain/problem.ts'
import {
  listFailedInvoices,
  listFailedPushes,
  listInvoiceRuns,
  readComparison,
  retryInvoices,
  retryPushes,
} from '../../../db/billing/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import type { Answer } from '../../../kit/http/call.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { type OperatorAct, auditStaff } from '../../kit/change/staff-audit.ts'
import type { Parts } from '../../kit/parts.ts'
import { viewOf } from '../../../resources/kit/view.ts'
import { noun } from '../../kit/noun.ts'

type RunParts = Pick<Parts, 'clock' | 'db' | 'random'>

const RUNS_SHOWN = 24
const FAILURES_SHOWN = 100

const invoiceRunEndpoints = (parts: RunParts): readonly Endpoint[] => [
  operatorEndpoint(routes.listInvoiceRuns, async () =>
    complete((await listInvoiceRuns(parts.db, RUNS_SHOWN)).map(runView)),
  ),
  operatorEndpoint(routes.listFailedInvoices, async ({ params }) => {
    await requireRun(parts.db, params.period)
    return complete((await listFailedInvoices(parts.db, params.period, FAILURES_SHOWN)).map(failureView))
  }),
  operatorEndpoint(routes.retryFailedInvoices, async (call) => {
    await requireRun(parts.db, call.params.period)
    return await retry(parts, call, 'invoice_run.retry', call.params.period, (queries) =>
      retryInvoices(queries, call.params.period, call.now),
    )
  }),
  operatorEndpoint(routes.listFailedPayments, async () =>
    complete(
      (await listFailedPushes(parts.db, FAILURES_SHOWN)).map((failed) => ({
        invoice_id: failed.invoiceId,
        period: failed.period,
        ...failureView(failed),
      })),
    ),
  ),
  operatorEndpoint(routes.retryFailedPayments, (call) =>
    retry(parts, call, 'payment.retry', '', (queries) => retryPushes(queries, call.now)),
  ),
  operatorEndpoint(routes.listPaymentDifferences, async () => {
    const { comparedAt, differences } = await readComparison(parts.db)
    const items = differences.map(({ foundAt, ...found }) => ({ ...found, found_at: foundAt.toISOString() }))
    return {
      status: 200,
      body: { items, next_cursor: null, compared_at: comparedAt?.toISOString() ?? null },
    }
  }),
]

/** Throws 404 for a month whose invoices were never created. */
async function requireRun(queries: Queries, period: string): Promise<void> {
  const runs = await listInvoiceRuns(queries, RUNS_SHOWN)
  if (runs.every((run) => run.period !== period)) throw notFound('invoice run')
}

const complete = (items: readonly object[]): Answer => ({ status: 200, body: { items, next_cursor: null } })

const runView = (run: Awaited<ReturnType<typeof listInvoiceRuns>>[number]) => viewOf(routes.InvoiceRun, run, {})

const failureView = (failed: Awaited<ReturnType<typeof listFailedInvoices>>[number]) => ({
  account_id: failed.accountId,
  attempts: failed.attempts,
  next_attempt_at: failed.nextAttemptAt.toISOString(),
  error: failed.error,
})

/** Retries, and writes the audit entry in the same transaction. */
async function retry(
  parts: RunParts,
  act: OperatorAct,
  action: string,
  resourceId: string,
  work: (queries: Queries) => Promise<number>,
): Promise<Answer> {
  const retried = await parts.db.transaction().execute(async (tx) => {
    const count = await work(tx)
    await auditStaff(tx, parts, act, { action, resourceId, detail: { retried_count: String(count) } })
    return count
  })
  return { status: 200, body: { retried_count: retried } }
}

export const invoiceRun = noun<Parts>({ name: 'invoice_run', endpoints: invoiceRunEndpoints })
