/** Resolves changes whose API server stopped between the acceptance and the audit entry. The sweeper finds out whether
 *  the write to Kubernetes happened. It then writes the audit entry and, for a write that did not happen, releases the
 *  claims. Each noun registers how its changes show and what they claimed. An intent of an unregistered noun is a bug
 *  and is left as it is: its claims stay, its entry is not written, and an alarm reports it. */
import type { UnsealedAuditEntry } from '../../../domain/audit/entry.ts'
import { defined } from '../../../domain/defined.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { type ChangeIntent, listIntents, closeIntent, withdrawing } from '../../../db/change/index.ts'
import type { IntentHandler } from '../controller.ts'
import { orUnavailable } from '../outage.ts'
import type { Parts } from '../parts.ts'
import { Outages } from '../../../kit/sys/outages.ts'

export { commitLastChange } from './last-change.ts'

/** The API server never writes to Kubernetes for an intent that is older than a third of this. */
export const INTENT_AGE_MILLISECONDS = 60_000
const SWEEP_MILLISECONDS = 15_000
const PAGE_INTENTS = 100

export type IntentHandlers = readonly IntentHandler[]

export interface SweepResult {
  /** How many intents were resolved. */
  readonly resolved: number
  /** How many were left because no noun is registered for them. */
  readonly unknown: number
}

export interface IntentSweeperOptions extends Parts {
  readonly intents: IntentHandlers
  /** Called after each sweep. */
  readonly onSwept?: ((result: SweepResult) => void) | undefined
}

/** Sweeps until the signal aborts. Never throws. */
export async function runIntentSweeper(options: IntentSweeperOptions, signal: AbortSignal): Promise<void> {
  const { clock, onSwept } = options
  const outages = new Outages(options, 'intents not swept')
  while (!signal.aborted) {
    await outages.attempt(async () => {
      const { failure, ...result } = await sweepIntents(options)
      onSwept?.(result)
      if (failure !== undefined) throw failure
    })
    await clock.sleep(SWEEP_MILLISECONDS, signal)
  }
}

/** Resolves every intent that is old enough, page by page. One that cannot be resolved is skipped, so that it never
 *  blocks those behind it. Throws Unavailable when a store is: nothing behind could be resolved either. */
export async function sweepIntents(
  options: IntentSweeperOptions,
): Promise<SweepResult & { readonly failure?: unknown }> {
  const { log, intents } = options
  const unknown = new Map<string, number>()
  let resolved = 0
  let failure: unknown
  for await (const intent of oldIntents(options)) {
    const { type } = intent.resource
    const handler = intents.find(({ resourceType }) => resourceType === type)
    if (handler === undefined) unknown.set(type, (unknown.get(type) ?? 0) + 1)
    else
      await resolveIntent(options, intent, handler).then(
        () => void resolved++,
        (error: unknown) => {
          if (error instanceof Unavailable) throw error
          failure = error
          log.info('change intent not resolved', { operation_id: intent.operationId, error })
        },
      )
  }
  for (const [type, count] of unknown)
    log.error('no noun has registered for change intents', { resource_type: type, count })
  const left = [...unknown.values()].reduce((sum, count) => sum + count, 0)
  return { resolved, unknown: left, ...defined({ failure }) }
}

async function* oldIntents({ db, clock }: Parts): AsyncGenerator<ChangeIntent> {
  const before = new Date(clock.now().getTime() - INTENT_AGE_MILLISECONDS)
  let after: ChangeIntent | undefined
  for (;;) {
    const page = await orUnavailable(listIntents(db, before, { limit: PAGE_INTENTS, after }))
    yield* page
    after = page.at(-1)
    if (page.length < PAGE_INTENTS) return
  }
}

async function resolveIntent(parts: Parts, intent: ChangeIntent, handler: IntentHandler): Promise<void> {
  const { db, log } = parts
  const wasApplied = await handler.wasApplied(parts, intent)
  if (!wasApplied) await handler.removeObjects?.(parts, intent)
  const audit: UnsealedAuditEntry = { ...intent.audit, outcome: wasApplied ? 'success' : 'failed' }
  let isOurs = false
  await orUnavailable(
    withdrawing(db, intent.accountId, {
      look: async () => (wasApplied ? undefined : handler.look?.(parts, intent)),
      async work(tx, state) {
        isOurs = await closeIntent(tx, intent.operationId)
        if (isOurs && !wasApplied) await handler.release(tx, intent, state)
      },
      async end(tx) {
        if (isOurs) await appendAudit(tx, audit, parts)
      },
    }),
  )
  log.info('intent settled', { operation_id: intent.operationId, has_happened: wasApplied })
}
