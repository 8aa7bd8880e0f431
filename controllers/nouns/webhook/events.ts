/** Finds the events of accounts that have webhooks. Nothing is written for them while something changes: they follow
 *  from the audit log, from operations that have ended, and from the difference between what is and what was sent last.
 */
import { readStanding } from '../../../db/account/index.ts'
import {
  addEvents,
  listAccountsWithNews,
  listAccountsWithWebhooks,
  listStates,
  lockEvents,
  noteStanding,
  noteStates,
  type EventReading,
  type ResourceState,
  takeAuditEntries,
  takeEndedOperations,
  type WebhookEvent,
} from '../../../db/webhook/index.ts'
import type { Transaction } from 'kysely'
import type { Tables } from '../../../db/tables.ts'
import { standingOf } from '../../../domain/account/standing.ts'
import type { AuditEntry } from '../../../domain/audit/chain.ts'
import { defined } from '../../../domain/defined.ts'
import { isHiddenTarget } from '../../../domain/managed-machine/rules.ts'
import { type FinishedOperation, isOperationKind } from '../../../domain/operations.ts'
import { Unavailable } from '../../../domain/problem.ts'
import {
  BODY_BYTES_MAXIMUM,
  effectOf,
  eventIdOf,
  isEventResource,
  STATE_RESOURCES,
} from '../../../domain/webhook/rules.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import { Backup } from '../../../resources/backup/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { Edge } from '../../../resources/edge/index.ts'
import { accountNamespace, accountOfNamespace, ROUTES } from '../../../resources/index.ts'
import type { OperationProgress } from '../../../resources/kit/shapes.ts'
import { type OperationSpec, recordedTarget, toOperationView } from '../../../resources/operation/index.ts'
import { Playground } from '../../../resources/playground/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'

export type EventParts = Pick<Parts, 'caches' | 'clock' | 'db'>

/** Sources of one account that are read in one transaction. */
const ENTRIES_MAXIMUM = 200
const ACCOUNTS_MAXIMUM = 100

/** Actions that are audited because they read a credential: they change nothing. */
const READS: ReadonlySet<string> = new Set(
  ROUTES.flatMap(({ audit, isCredentialRead }) => (isCredentialRead && audit !== null ? [audit] : [])),
)

interface Stateful {
  readonly state?: string | undefined
}

const STATE_KINDS: Readonly<Record<(typeof STATE_RESOURCES)[number], ResourceType<unknown, Stateful>>> = {
  server: Server,
  storage: Storage,
  snapshot: Snapshot,
  backup: Backup,
  custom_image: CustomImage,
  edge: Edge,
  playground: Playground,
}

/** Accounts of which a resource has changed since they were looked at. */
export interface ChangedAccounts {
  /** The accounts that were changed since the last call; all of them at the first call. */
  take(): ReadonlySet<string> | 'all'
  close(): void
}

/** Notes which accounts have changes in the caches. */
export function watchStates({ caches }: Pick<EventParts, 'caches'>): ChangedAccounts {
  let changed: Set<string> | 'all' = 'all'
  const stops = Object.values(STATE_KINDS).map((type) =>
    caches.of(type).subscribe(({ object: { metadata } }) => {
      const accountId = accountOfNamespace(metadata.namespace ?? '')
      if (accountId !== undefined && changed !== 'all') changed.add(accountId)
    }),
  )
  return {
    take() {
      const batch = changed
      changed = new Set()
      return batch
    },
    close: () => stops.forEach((stop) => stop()),
  }
}

/** One round over the accounts that have something new. Answers whether there may be more at once. Throws Unavailable.
 */
export async function findEvents(parts: EventParts, changed: ReadonlySet<string> | 'all'): Promise<boolean> {
  const news = await orUnavailable(listAccountsWithNews(parts.db, ACCOUNTS_MAXIMUM))
  const all = await orUnavailable(listAccountsWithWebhooks(parts.db))
  const accounts = new Set([...news, ...all.filter((id) => changed === 'all' || changed.has(id))])
  let hasMore = news.length === ACCOUNTS_MAXIMUM
  const failures: unknown[] = []
  for (const accountId of accounts) {
    try {
      hasMore = (await findEventsOf(parts, accountId)) || hasMore
    } catch (error) {
      if (error instanceof Unavailable) throw error
      failures.push(error) // of this account only: the others have their turn
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'the events of some accounts were not found')
  return hasMore
}

/** Finds the events of the account in one transaction. Answers whether there are more. Throws Unavailable. */
export async function findEventsOf(parts: EventParts, accountId: string): Promise<boolean> {
  const { db, clock } = parts
  return await orUnavailable(
    db.transaction().execute(async (tx) => {
      const reading = await lockEvents(tx, accountId)
      if (reading === undefined) return false
      const now = clock.now()
      const entries = await takeAuditEntries(tx, accountId, reading.auditSequence, ENTRIES_MAXIMUM)
      const operations = await takeEndedOperations(tx, accountId, ENTRIES_MAXIMUM)
      const events = [
        ...entries.flatMap((entry) => eventsOfEntry(accountId, entry)),
        ...operations.flatMap((operation) => eventsOfOperation(accountId, operation)),
        ...(await eventsOfStates(parts, tx, accountId, { ...reading, now })),
        ...(await eventsOfStanding(tx, accountId, reading.standing, now)),
      ]
      await addEvents(tx, accountId, events, now)
      return entries.length === ENTRIES_MAXIMUM || operations.length === ENTRIES_MAXIMUM
    }),
  )
}

interface Facts {
  readonly source: string
  readonly type: string
  readonly at: string
  readonly resource?: { readonly type: string; readonly id: string }
  readonly data: object
}

/** The event in the form of its body. */
function eventOf(accountId: string, { source, type, at, resource, data }: Facts): WebhookEvent {
  const id = eventIdOf(source, type)
  const bodyWith = (content: object): string =>
    JSON.stringify({ id, type, timestamp: at, account_id: accountId, resource: resource ?? null, data: content })
  const body = bodyWith(data)
  const isTooLarge = Buffer.byteLength(body) > BODY_BYTES_MAXIMUM
  return { id, type, resource, body: isTooLarge ? bodyWith({ is_truncated: true }) : body }
}

/** The entry itself, and what it did to a resource. What an operation brings about is the event of its end. */
export function eventsOfEntry(accountId: string, entry: AuditEntry): readonly WebhookEvent[] {
  const { id, at, action, outcome, resource_type: type, resource_id: resourceId, changes, actor_email: actor } = entry
  const resource = isEventResource(type) && resourceId !== '' ? { type, id: resourceId } : undefined
  const own = { source: id, at, ...defined({ resource }) }
  const events = [eventOf(accountId, { ...own, type: 'audit.entry', data: { entry } })]
  const isOfOperation = isOperationKind(action) || isOperationKind(action.replace(/^custom_image\./, 'template.'))
  if (resource === undefined || outcome !== 'success' || READS.has(action) || isOfOperation) return events
  const data = { action, actor, changes, audit_entry_id: id, operation_id: null }
  return [...events, eventOf(accountId, { ...own, type: `${type}.${effectOf(action)}`, data })]
}

/** The name of the target for customers: their images are templates of the platform. */
const typeOf = ({ type }: FinishedOperation['target']): string => (type === 'template' ? 'custom_image' : type)

/** The end of the operation, and what it did to its resource if it succeeded. An operation `sync` applies changes that
 *  the audit log has, each for itself. */
export function eventsOfOperation(accountId: string, operation: FinishedOperation): readonly WebhookEvent[] {
  if (isHiddenTarget(operation.target)) return []
  const { id, kind, actor, status, startedAt, finishedAt: at, ...rest } = operation
  const type = typeOf(operation.target)
  const own = { source: id, at, ...(isEventResource(type) ? { resource: { type, id: operation.target.id } } : {}) }
  const progress: OperationProgress = {
    ...rest,
    id,
    kind,
    actor,
    status,
    finishedAt: at,
    startedAt: startedAt ?? undefined,
  }
  // the reconciler recorded these
  const [target, carrier] = [operation.target, operation.carrier] as [OperationSpec['target'], OperationSpec['carrier']]
  const view = toOperationView(progress, recordedTarget(target), carrier)
  const end = eventOf(accountId, { ...own, type: 'operation.finished', data: { operation: view } })
  if (own.resource === undefined || status !== 'succeeded' || kind.endsWith('.sync')) return [end]
  const data = { action: kind, actor, changes: [], audit_entry_id: null, operation_id: id }
  return [eventOf(accountId, { ...own, type: `${type}.${effectOf(kind)}`, data }), end]
}

/** Clocks of the Kubernetes API and of those who create webhooks differ by less. */
const SKEW_MILLISECONDS = 5_000

/** The states that differ from those that were sent last. The first time that an account is looked at, there is nothing
 *  to compare for the resources that are older than its first webhook; any other resource without a state is new. */
async function eventsOfStates(
  { caches }: Pick<EventParts, 'caches'>,
  tx: Transaction<Tables>,
  accountId: string,
  { now, hasStates, createdAt }: { readonly now: Date } & Pick<EventReading, 'hasStates' | 'createdAt'>,
): Promise<readonly WebhookEvent[]> {
  // A resource that is not in a cache yet is not gone.
  if (!caches.isReady()) return []
  const known = new Map((await listStates(tx, accountId)).map((one) => [`${one.type}/${one.id}`, one]))
  const namespace = accountNamespace(accountId)
  const since = createdAt.getTime() - SKEW_MILLISECONDS
  const found = STATE_RESOURCES.flatMap((type): readonly (ResourceState & { readonly isOlder: boolean })[] =>
    caches
      .of(STATE_KINDS[type])
      .inNamespace(namespace)
      .flatMap(({ metadata: { name: id, creationTimestamp = '' }, status }: KubeObject<unknown, Stateful>) =>
        status?.state === undefined || isHiddenTarget({ type, id })
          ? []
          : [{ type, id, state: status.state, isOlder: Date.parse(creationTimestamp) < since }],
      ),
  )
  const differing = found.filter(({ type, id, state }) => known.get(`${type}/${id}`)?.state !== state)
  const present = new Set(found.map(({ type, id }) => `${type}/${id}`))
  const deletions = [...known].flatMap(([key, one]) => (present.has(key) ? [] : [one]))
  await noteStates(tx, accountId, { set: differing, deletions, isFirst: !hasStates })
  const at = now.toISOString()
  return differing.flatMap(({ type, id, state, isOlder }) => {
    if (isOlder && !hasStates) return []
    const before = known.get(`${type}/${id}`)?.state ?? null
    const data = { state, previous_state: before }
    const source = `${id} ${before} ${state} ${at}`
    return eventOf(accountId, { source, type: `${type}.state`, at, resource: { type, id }, data })
  })
}

/** The standing, if it is not the one that was sent last. */
async function eventsOfStanding(
  tx: Transaction<Tables>,
  accountId: string,
  before: string | null,
  now: Date,
): Promise<readonly WebhookEvent[]> {
  const { canCreateResources, reason } = standingOf(await readStanding(tx, accountId, now))
  const standing = reason ?? 'good'
  if (standing === before) return []
  await noteStanding(tx, accountId, standing)
  if (before === null) return []
  const at = now.toISOString()
  const data = { can_create_resources: canCreateResources, reason }
  return [eventOf(accountId, { source: `${before} ${standing} ${at}`, type: 'billing.standing', at, data })]
}
