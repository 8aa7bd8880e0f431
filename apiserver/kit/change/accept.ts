/** Accepts a change: claims and an intent in one transaction, ONE write to Kubernetes, then the audit entry in the
 *  transaction that removes the intent. The write is the commit point. If the process dies in between, the intent's
 *  sweeper finds out whether the write happened and writes the entry, so that every accepted change has exactly one. */
import type { Transaction } from 'kysely'
import type { UnsealedAuditEntry } from '../../../domain/audit/entry.ts'
import { defined } from '../../../domain/defined.ts'
import { deadlineOf, type Extent, type OperationKind, stepsOf } from '../../../domain/operations.ts'
import { conflict, Problem, Unavailable } from '../../../domain/problem.ts'
import { isPlain, type PlainType } from '../../../changes/kit/define.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import {
  type ChangeIntent,
  closeIntent,
  ensureIntent,
  recordIntent,
  takeIntent,
  withdrawing,
} from '../../../db/change/index.ts'
import { databaseUnavailable } from '../../../db/kit/failures.ts'
import type { Tables } from '../../../db/tables.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../../../kit/kube/store.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { isDryRun } from '../../../kit/sys/dry-run.ts'
import { currentTraceparent } from '../../../kit/sys/tracing.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { ACCOUNT_LABEL } from '../../../resources/kit/labels.ts'
import {
  carrierOf,
  type NamedTarget,
  namedTarget,
  type Operable,
  Operation,
  type OperationSpec,
} from '../../../resources/operation/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../parts.ts'
import { throughOutage } from './audit.ts'

export type AcceptParts = Pick<Parts, 'store' | 'caches' | 'db' | 'clock' | 'random' | 'log' | 'commitAudit'>

export interface Acceptance<Claims, Spec, Status> {
  /** Also the operation's id, where the change starts one. */
  readonly id: string
  readonly accountId: string
  readonly resource: { readonly type: OperationSpec['target']['type'] | PlainType; readonly id: string }
  /** The audit entry of the success. */
  readonly audit: UnsealedAuditEntry
  /** Claims what the change needs; throws a Problem when it is not available. */
  readonly claim?: (tx: Transaction<Tables>) => Promise<Claims>
  /** Does what `claim` does and records the intent, in one transaction with other changes. */
  readonly claimTogether?: (intent: ChangeIntent) => Promise<Claims>
  /** Releases what was claimed, when the change did not happen. `stored` is the object as it is by then. */
  readonly release?: (tx: Transaction<Tables>, stored: KubeObject<Spec, Status> | undefined) => Promise<void>
  /** The one write. Called again after a 409: reads and validates again each time, throws a Problem to refuse. */
  readonly write: (claims: Claims | undefined) => Promise<KubeObject<Spec, Status>>
  /** The object as the store has it now. */
  readonly read: () => Promise<KubeObject<Spec, Status> | undefined>
  /** Whether the object shows that this change was made. */
  readonly wasApplied: (object: KubeObject<Spec, Status>) => boolean
  readonly operation?: OperationStanza
}

/** A write whose outcome nobody knows: the intent stays, and its sweeper writes the audit entry. */
export class OutcomeUnknown extends Unavailable {}

const WRITE_ATTEMPTS_MAXIMUM = 5
/** An intent older than this is never used for a write: its sweeper may be about to read it. */
const INTENT_WRITABLE_MILLISECONDS = 20_000

export const newStanza = (
  parts: Pick<Parts, 'random'>,
  kind: OperationKind,
  of: Extent & {
    readonly actor: string
    readonly requestId: string
    readonly now: Date
    readonly arguments?: Readonly<Record<string, string>>
  },
): OperationStanza => {
  const traceparent = currentTraceparent()
  return {
    id: newUuid(parts.random),
    kind,
    requestedAt: of.now.toISOString(),
    deadlineAt: deadlineOf(kind, of.now, of).toISOString(),
    actor: of.actor,
    requestId: of.requestId,
    ...defined({ traceparent }),
    ...(of.arguments === undefined ? {} : { arguments: { ...of.arguments } }),
  }
}

/** Returns the written object. Throws a Problem when the change was refused; nothing has changed then. */
export async function accept<Claims, Spec, Status>(
  parts: AcceptParts,
  change: Acceptance<Claims, Spec, Status>,
): Promise<KubeObject<Spec, Status>> {
  const startedAt = parts.clock.monotonicMilliseconds()
  const intent: ChangeIntent = {
    operationId: change.id,
    accountId: change.accountId,
    resource: change.resource,
    createdAt: parts.clock.now(),
    audit: change.audit,
  }
  const claims = await claim(parts, change, intent)
  let object: KubeObject<Spec, Status>
  try {
    object = await write(parts, change, claims, startedAt)
  } catch (error) {
    if (error instanceof OutcomeUnknown) throw error
    await entryBySweeperUnless(throughOutage(parts, () => withdraw(parts, change)))
    throw error
  }
  if (!isDryRun()) await Promise.all([commit(parts, change, object), announce(parts, change, object)])
  return object
}

/** Claims and intent. When it is unknown whether they were committed, both are removed again before the refusal, so
 *  that the caller's entry for it is the only one. If the removal fails too, the sweeper writes the entry. */
async function claim<Claims, Spec, Status>(
  parts: AcceptParts,
  change: Acceptance<Claims, Spec, Status>,
  intent: ChangeIntent,
): Promise<Claims | undefined> {
  try {
    return await (change.claimTogether?.(intent) ??
      parts.db.transaction().execute(async (tx) => {
        const claimed = await change.claim?.(tx)
        await recordIntent(tx, intent)
        return claimed
      }))
  } catch (error) {
    if (!(databaseUnavailable(error) instanceof Unavailable)) throw error
    await entryBySweeperUnless(throughOutage(parts, () => withdrawUnanswered(parts, change, intent)))
    throw error
  }
}

/** While an intent may exist, its sweeper writes the entry of the failure. The caller must not write one then. */
async function entryBySweeperUnless(isWithdrawn: Promise<void>): Promise<void> {
  await isWithdrawn.catch((cause: unknown) => {
    throw new OutcomeUnknown('the database', cause)
  })
}

async function write<Claims, Spec, Status>(
  { clock }: AcceptParts,
  change: Acceptance<Claims, Spec, Status>,
  claims: Claims | undefined,
  startedAt: number,
): Promise<KubeObject<Spec, Status>> {
  for (let attempt = 1; ; attempt++) {
    if (clock.monotonicMilliseconds() - startedAt > INTENT_WRITABLE_MILLISECONDS)
      throw new Unavailable('the Kubernetes API')
    try {
      return await change.write(claims)
    } catch (error) {
      if (error instanceof Problem) throw error
      if (error instanceof ApiError && error.code < 500 && !isAlreadyExists(error)) {
        // An object that was deleted meanwhile is found missing by the next read.
        if (!isConflict(error) && !isNotFound(error)) throw refusalOf(error)
        // New objects are created in the account's namespace, which the next request creates again if somebody has
        // removed it.
        if (attempt >= WRITE_ATTEMPTS_MAXIMUM && isNotFound(error))
          throw new Unavailable("the account's namespace", error)
        if (attempt >= WRITE_ATTEMPTS_MAXIMUM)
          throw conflict('state_not_allowed', 'The resource is being changed by others. Try again.', {
            resource: change.resource,
          })
        continue
      }
      return await find(change, error)
    }
  }
}

/** After a failure that may have come too late to stop the write: what the store has. */
async function find<Claims, Spec, Status>(
  change: Acceptance<Claims, Spec, Status>,
  cause: unknown,
): Promise<KubeObject<Spec, Status>> {
  const object = await change.read().catch(() => undefined)
  if (object !== undefined && change.wasApplied(object)) return object
  throw new OutcomeUnknown('the Kubernetes API', cause)
}

/** A refusal by the Kubernetes API is a bug here or a rule of the kind; the caller gets its message in both cases. */
const refusalOf = (error: ApiError): Error =>
  error.reason === 'Invalid'
    ? new Problem(
        400,
        error.message,
        { errors: error.causes.map(({ field, message }) => ({ field: field ?? '', detail: message ?? '' })) },
        error,
      )
    : error.code === 429
      ? new Unavailable('the Kubernetes API', error)
      : error

async function withdraw<Claims, Spec, Status>(
  { db }: AcceptParts,
  change: Acceptance<Claims, Spec, Status>,
): Promise<void> {
  await withdrawing(db, change.accountId, {
    look: async () => (change.release === undefined ? undefined : change.read()),
    async work(tx, stored) {
      if (await closeIntent(tx, change.id)) await change.release?.(tx, stored)
    },
  })
}

/** As `withdraw`, after a transaction whose outcome is unknown. It may be committing right now: recording its intent
 *  once more waits for that. */
async function withdrawUnanswered<Claims, Spec, Status>(
  { db }: AcceptParts,
  change: Acceptance<Claims, Spec, Status>,
  intent: ChangeIntent,
): Promise<void> {
  await withdrawing(db, change.accountId, {
    look: async () => (change.release === undefined ? undefined : change.read()),
    async work(tx, stored) {
      const wasNoted = !(await ensureIntent(tx, intent))
      await closeIntent(tx, change.id)
      if (wasNoted) await change.release?.(tx, stored)
    },
  })
}

/** A failure here changes nothing for the caller: the sweeper does the same later. */
async function commit<Claims, Spec, Status>(
  parts: AcceptParts,
  change: Acceptance<Claims, Spec, Status>,
  { metadata: { resourceVersion = '' } }: KubeObject<Spec, Status>,
): Promise<void> {
  try {
    await parts.commitAudit(change.accountId, {
      id: change.id,
      accountId: change.accountId,
      resource: change.resource,
      resourceVersion,
      audit: change.audit,
    })
  } catch (error) {
    parts.log.info('change left to the sweeper', { operation_id: change.id, error })
  }
}

/** Writes the audit entry of an earlier change that is known to have happened, before its evidence is overwritten. Does
 *  nothing when the entry exists. */
export async function commitEarlier(parts: AcceptParts, id: string): Promise<void> {
  await parts.db.transaction().execute(async (tx) => {
    const audit = await takeIntent(tx, id)
    if (audit !== undefined) await appendAudit(tx, audit, parts)
  })
}

/** The Operation object, created before the reconciler that would create it too. */
async function announce<Claims, Spec, Status>(
  parts: AcceptParts,
  { operation, accountId, resource: { type, id } }: Acceptance<Claims, Spec, Status>,
  { spec }: KubeObject<Spec, Status>,
): Promise<void> {
  if (operation === undefined || isPlain(type)) return
  try {
    await makeOperation(parts, accountId, namedTarget(type, { name: id, spec }), operation)
  } catch (error) {
    parts.log.info('operation left to its reconciler', { operation_id: operation.id, error })
  }
}

/** Creates the Operation of the stanza that is about to be replaced, if its reconciler has not created it yet: nothing
 *  else would remember it. Throws the store's error when it cannot be created. */
export async function announceEarlier(
  parts: AcceptParts,
  accountId: string,
  target: OperationSpec['target'],
  { spec, status }: Operable,
): Promise<void> {
  const { operation } = spec
  if (operation === undefined || status?.operation?.id === operation.id) return
  await makeOperation(parts, accountId, namedTarget(target.type, { name: target.id, spec }), operation)
}

function carrierIn(operation: OperationStanza): Pick<OperationSpec, 'carrier'> {
  const carrier = carrierOf(operation)
  return carrier === undefined ? {} : { carrier }
}

/** Does nothing when it exists already. */
async function makeOperation(
  { store, caches }: AcceptParts,
  accountId: string,
  { name, ...target }: NamedTarget,
  operation: OperationStanza,
): Promise<void> {
  const spec: OperationSpec = {
    kind: operation.kind,
    target: { ...target, ...defined({ name }) },
    ...carrierIn(operation),
    actor: operation.actor,
    requestId: operation.requestId,
    createdAt: operation.requestedAt,
    deadlineAt: operation.deadlineAt,
    stepCount: stepsOf(operation.kind).length,
  }
  const labels = { [ACCOUNT_LABEL]: accountId, [`svccloud.dev/${target.type}`]: target.id }
  try {
    caches.apply(
      Operation,
      await store.create(Operation, {
        metadata: { name: operation.id, namespace: accountNamespace(accountId), labels },
        spec,
      }),
    )
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}
