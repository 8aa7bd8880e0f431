/** Settles changes whose maker died between the acceptance and the audit entry: finds out whether the write to
 *  Kubernetes happened,
 *  then writes the entry and, for what did not happen, gives the claims back. */
import type { UnsealedAuditEntry } from '../../domain/audit.ts'
import { appendAudit } from '../../db/audit/index.ts'
import { type ChangeIntent, closeIntent, listIntents } from '../../db/change/index.ts'
import { findOperation } from '../../db/operation/index.ts'
import { endSizeChange, releaseServer } from '../../db/server/index.ts'
import { removeServerGroup } from '../../db/server-group/index.ts'
import { Secret } from '../../kit/kube/object.ts'
import { accountNamespace } from '../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../resources/labels.ts'
import { Operation } from '../../resources/operation/index.ts'
import { ServerGroup } from '../../resources/server-group/index.ts'
import { Server } from '../../resources/server/index.ts'
import { orUnavailable } from '../database.ts'
import type { Parts } from '../parts.ts'

/** The API server never writes for an intent that is older than a third of this. */
export const INTENT_AGE_MILLISECONDS = 60_000
const SWEEP_MILLISECONDS = 15_000
const INTENTS_MAXIMUM = 100

/** Sweeps until the signal aborts. Never throws. */
export async function runIntentSweeper(parts: Parts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sweepIntents(parts).catch((error: unknown) => parts.log.warn('intents not swept', { error }))
    await parts.clock.sleep(SWEEP_MILLISECONDS, signal)
  }
}

/** Settles every intent that is old enough; answers how many. */
export async function sweepIntents(parts: Parts): Promise<number> {
  const before = new Date(parts.clock.now().getTime() - INTENT_AGE_MILLISECONDS)
  const intents = await orUnavailable(listIntents(parts.db, before, INTENTS_MAXIMUM))
  for (const intent of intents) await resolveIntent(parts, intent)
  return intents.length
}

async function resolveIntent(parts: Parts, intent: ChangeIntent): Promise<void> {
  const { db, store, log } = parts
  const hasHappened = await wasApplied(parts, intent)
  const isLostServer = !hasHappened && intent.audit.action === 'server.create'
  const isLostGroup = !hasHappened && intent.audit.action === 'server_group.create'
  const server = { accountId: intent.accountId, serverId: intent.resource.id }
  if (!hasHappened && intent.audit.action === 'server.rebuild')
    await store.delete(Secret, {
      namespace: accountNamespace(intent.accountId),
      name: `${server.serverId}-user-data-${intent.operationId}`,
    })
  if (isLostServer)
    await store.delete(Secret, { namespace: accountNamespace(intent.accountId), name: `${server.serverId}-user-data` })
  const audit: UnsealedAuditEntry = { ...intent.audit, outcome: hasHappened ? 'success' : 'failed' }
  await orUnavailable(
    db.transaction().execute(async (tx) => {
      if (!(await closeIntent(tx, intent.operationId))) return
      if (isLostServer) await releaseServer(tx, server)
      if (!hasHappened && intent.audit.action === 'server.change_plan')
        await endSizeChange(tx, { ...server, operationId: intent.operationId, isDone: false })
      if (isLostGroup) await removeServerGroup(tx, { accountId: intent.accountId, groupId: intent.resource.id })
      await appendAudit(tx, audit, parts)
    }),
  )
  log.info('intent settled', { operation_id: intent.operationId, has_happened: hasHappened })
}

/** A write that happened shows on its server, or in the operation that it began. */
async function wasApplied(
  { db, store }: Parts,
  { operationId, accountId, resource, audit }: ChangeIntent,
): Promise<boolean> {
  const namespace = accountNamespace(accountId)
  if (resource.type === 'server_group') {
    const group = await store.get(ServerGroup, { namespace, name: resource.id })
    const isGoing = group === undefined || group.metadata.deletionTimestamp !== undefined
    return audit.action === 'server_group.delete'
      ? isGoing
      : group?.metadata.annotations?.[LAST_CHANGE_ANNOTATION] === operationId
  }
  const server = await store.get(Server, { namespace, name: resource.id })
  const shown = [
    server?.spec.operation?.id,
    server?.status?.operation?.id,
    server?.metadata.annotations?.[LAST_CHANGE_ANNOTATION],
  ]
  return (
    shown.includes(operationId) ||
    (await store.get(Operation, { namespace, name: operationId })) !== undefined ||
    (await orUnavailable(findOperation(db, accountId, operationId))) !== undefined
  )
}
