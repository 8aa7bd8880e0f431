/** Resolves changes whose maker died between the acceptance and the audit entry: finds out whether the write to
 *  Kubernetes happened, then writes the entry and, for what did not happen, gives the claims back. How a change shows
 *  and what it claimed is what its noun has registered; an intent of a noun that has registered nothing is a bug, and
 *  is left as it is: its claims stay, its entry is not written, and an alarm says so. */
import type { UnsealedAuditEntry } from '../../domain/audit.ts'
import { appendAudit } from '../../db/audit/index.ts'
import { type ChangeIntent, listIntents, closeIntent } from '../../db/change/index.ts'
import type { IntentHandler } from '../controller.ts'
import { orUnavailable } from '../database.ts'
import type { Parts } from '../parts.ts'

/** The API server never writes for an intent that is older than a third of this. */
export const INTENT_AGE_MILLISECONDS = 60_000
const SWEEP_MILLISECONDS = 15_000
const INTENTS_MAXIMUM = 100

export type IntentHandlers = readonly IntentHandler[]

export interface SweepResult {
  /** How many intents were resolved. */
  readonly resolved: number
  /** How many were left because no noun has registered for them. */
  readonly unknown: number
}

export interface IntentSweeperOptions extends Parts {
  readonly intents: IntentHandlers
  /** Called after each sweep. */
  readonly onSwept?: ((result: SweepResult) => void) | undefined
}

/** Sweeps until the signal aborts. Never throws. */
export async function runIntentSweeper(options: IntentSweeperOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, onSwept } = options
  while (!signal.aborted) {
    await sweepIntents(options).then(onSwept, (error: unknown) => log.warn('intents not swept', { error }))
    await clock.sleep(SWEEP_MILLISECONDS, signal)
  }
}

/** Resolves every intent that is old enough. */
export async function sweepIntents(options: IntentSweeperOptions): Promise<SweepResult> {
  const { db, clock, log, intents } = options
  const before = new Date(clock.now().getTime() - INTENT_AGE_MILLISECONDS)
  let [resolved, unknown] = [0, 0]
  for (const intent of await orUnavailable(listIntents(db, before, INTENTS_MAXIMUM))) {
    const handler = intents.find(({ resourceType }) => resourceType === intent.resource.type)
    if (handler === undefined) {
      unknown++
      log.error('no noun has registered for the change intent', {
        operation_id: intent.operationId,
        resource_type: intent.resource.type,
      })
      continue
    }
    await resolveIntent(options, intent, handler)
    resolved++
  }
  return { resolved, unknown }
}

async function resolveIntent(parts: Parts, intent: ChangeIntent, handler: IntentHandler): Promise<void> {
  const { db, log } = parts
  const wasApplied = await handler.wasApplied(parts, intent)
  if (!wasApplied) await handler.removeObjects?.(parts, intent)
  const audit: UnsealedAuditEntry = { ...intent.audit, outcome: wasApplied ? 'success' : 'failed' }
  await orUnavailable(
    db.transaction().execute(async (tx) => {
      if (!(await closeIntent(tx, intent.operationId))) return
      if (!wasApplied) await handler.release(tx, intent)
      await appendAudit(tx, audit, parts)
    }),
  )
  log.info('intent settled', { operation_id: intent.operationId, has_happened: wasApplied })
}
