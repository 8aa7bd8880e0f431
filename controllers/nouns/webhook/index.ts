/** The webhook controller. A webhook that was created with kubectl gets its row in PostgreSQL, from which events are
 *  sent; the status shows what came of them. Finding events, sending them, and removing what the log has no room for is
 *  work that has no object. */
import { webhookChanges } from '../../../changes/webhook.ts'
import { type KubernetesRequest, listKubernetesRequests } from '../../../db/request/index.ts'
import {
  countDeliveries,
  type DeliveryCounts,
  findWebhook,
  pruneDeliveries,
  pruneEvents,
  removeWebhook,
  type WebhookRow,
} from '../../../db/webhook/index.ts'
import { defined } from '../../../domain/defined.ts'
import { deliveryStateOf, NO_SECRET_REASON } from '../../../domain/webhook/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { toSeconds } from '../../../kit/sys/clock.ts'
import { Outages } from '../../../kit/sys/outages.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Webhook, type WebhookSpec, type WebhookStatus } from '../../../resources/webhook/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { type AuditEffects, auditEffect } from '../../kit/audit.ts'
import { type ClaimEffects, claimEffect, intentOf } from '../../kit/changes.ts'
import { controller } from '../../kit/controller.ts'
import type { ActionWith, EffectsOn } from '../../kit/effects.ts'
import { healthConditions } from '../../kit/health.ts'
import { auditRequests } from '../../kit/operation/direct-edit.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import { type DeliverParts, openDeliveries } from './deliver.ts'
import { type EventParts, findEvents, watchStates } from './events.ts'

type WebhookObject = KubeObject<WebhookSpec, WebhookStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly row: WebhookRow | undefined
  /** Requests by people to the Kubernetes API since the last reconcile. */
  readonly requests: readonly KubernetesRequest[]
}

/** What is delivered changes rows only, for which no event wakes the reconciler. */
const LOOK_SECONDS = 60
/** Whoever creates it makes a secret next. Later, somebody may or may not. */
const SECRET_SECONDS = 5
const NEW_MILLISECONDS = 120_000

/** The effects of webhooks by name, each with its input. */
interface WebhookEffects extends AuditEffects, ClaimEffects {
  /** Removes the row of a webhook that is being deleted. */
  readonly remove: { readonly accountId: string }
}
type WebhookAction = ActionWith<WebhookEffects>

async function observe({ db }: Parts, { metadata, status }: WebhookObject): Promise<Observed> {
  const { namespace = '', name: webhookId, uid = '', generation = 0 } = metadata
  const accountId = await findAccountOf(db, namespace)
  const after = status?.observedGeneration ?? 0
  return {
    accountId,
    row: accountId === undefined ? undefined : await orUnavailable(findWebhook(db, { accountId, webhookId })),
    requests:
      generation > after ? await orUnavailable(listKubernetesRequests(db, uid, { after, upTo: generation })) : [],
  }
}

/** Guards in order: deleting, no account, no row, other fields, done. */
export function plan(webhook: WebhookObject, observed: Observed, now: Date): readonly WebhookAction[] {
  return [...auditRequests(webhook, observed.requests), ...decide(webhook, observed, now)]
}

function decide(
  { metadata: { creationTimestamp, deletionTimestamp }, spec, status }: WebhookObject,
  { accountId, row }: Observed,
  now: Date,
): readonly WebhookAction[] {
  if (deletionTimestamp !== undefined)
    return row === undefined || accountId === undefined
      ? [{ do: 'finalized' }]
      : [
          { do: 'effect', name: 'remove', input: { accountId } },
          { do: 'wait', seconds: 0, for: 'the next look' },
        ]
  const stalled = (reason: string, message: string): readonly WebhookAction[] => [
    { do: 'status', status: {}, conditions: healthConditions('stalled', reason, message) },
  ]
  if (accountId === undefined) return stalled('NoAccount', 'The namespace belongs to no account.')
  const due = row === undefined ? 'create' : isSame(row, spec) ? undefined : 'configure'
  if (row === undefined || due !== undefined) {
    const refusal = status?.conditions?.find(({ type, status: is }) => type === 'Claimed' && is === 'False')
    return [
      { do: 'effect', name: 'claim', input: { accountId, change: due ?? 'create' } },
      ...(refusal === undefined ? [] : stalled(refusal.reason, refusal.message)),
      { do: 'wait', seconds: refusal === undefined ? 0 : LOOK_SECONDS, for: 'room in the quota' },
    ]
  }
  const { deliveredAt, pauseReason } = row
  const deliveryState = deliveryStateOf(row)
  const isAwaited = !row.hasSecret && now.getTime() - Date.parse(creationTimestamp ?? '') < NEW_MILLISECONDS
  return [
    {
      do: 'status',
      status: { deliveryState, ...defined({ deliveredAt: deliveredAt === null ? undefined : toSeconds(deliveredAt) }) },
      conditions: [
        ...(deliveryState === 'paused'
          ? healthConditions('stalled', 'Paused', pauseReason ?? '')
          : deliveryState === 'no_secret'
            ? healthConditions('stalled', 'NoSecret', NO_SECRET_REASON)
            : healthConditions('ready', 'Kept', '')),
        { type: 'Claimed', status: 'True', reason: 'Claimed', message: '' },
      ],
    },
    { do: 'wait', seconds: isAwaited ? SECRET_SECONDS : LOOK_SECONDS, for: 'a change' },
  ]
}

const isSame = (row: WebhookRow, { name, url, events, enabled }: WebhookSpec): boolean =>
  row.name === name &&
  row.url === url &&
  row.enabled === enabled &&
  row.events.length === events.length &&
  row.events.every((event, index) => event === events[index])

export const webhookController = controller<WebhookEffects>()({
  name: 'webhook',
  resource: Webhook,
  sharding: 'common',
  finalizer: finalizerOf(Webhook),
  intent: intentOf(webhookChanges),
  plan,
  reads: [],
  writes: [],
  open: (parts: Parts) => ({
    watches: [],
    observe: (webhook) => observe(parts, webhook),
    effects: webhookEffects(parts),
  }),
})

const webhookEffects = (parts: Parts): EffectsOn<WebhookEffects, WebhookSpec, WebhookStatus> => ({
  claim: claimEffect(parts, webhookChanges),
  audit: auditEffect(parts),
  async remove({ accountId }, { metadata: { name: webhookId } }) {
    await orUnavailable(parts.db.transaction().execute((tx) => removeWebhook(tx, { accountId, webhookId })))
    return undefined
  },
})

export interface WebhookOptions extends Pick<DeliverParts, 'trust'> {
  readonly sealing?: Sealing
  /** Called after each look at the log. */
  readonly onDeliveries?: (counts: DeliveryCounts) => void
}
type WebhookParts = Omit<DeliverParts, 'sealing'> & EventParts & WebhookOptions

/** While there is nothing to do. */
const ROUND_MILLISECONDS = 1_000
const PRUNE_MILLISECONDS = 60_000
/** Of what the look before may have missed: ends that were not committed, by clocks of other processes. */
const OVERLAP_MILLISECONDS = 600_000
/** Events without a delivery are left by processes of the release before only. */
const EVENTS_MILLISECONDS = 86_400_000

/** Finds events and removes what the log has no room for, until the signal aborts; sends them where there is a key to
 *  open secrets with. Without one they wait, as many as may: whatever has ended is noted for accounts with a webhook,
 *  and would be for ever. Never throws. */
export async function runWebhooks(parts: WebhookParts, signal: AbortSignal): Promise<void> {
  const { clock, sealing } = parts
  if (sealing === undefined) return
  const sends = sealing.isAvailable ? [send({ ...parts, sealing }, signal)] : []
  await Promise.all([find(parts, signal), look(parts, signal), ...sends])
  async function look({ db, onDeliveries }: WebhookParts, over: AbortSignal): Promise<void> {
    const outages = new Outages(parts, 'the log of webhooks was not pruned')
    let since: Date | undefined
    let eventsAt = 0
    while (!over.aborted) {
      await outages.attempt(async () => {
        const now = clock.now()
        await orUnavailable(pruneDeliveries(db, { now, since }))
        since = new Date(now.getTime() - OVERLAP_MILLISECONDS)
        if (now.getTime() >= eventsAt) {
          await orUnavailable(pruneEvents(db))
          eventsAt = now.getTime() + EVENTS_MILLISECONDS
        }
        onDeliveries?.(await orUnavailable(countDeliveries(db, clock.now())))
      })
      await clock.sleep(PRUNE_MILLISECONDS, over)
    }
  }
}

async function find(parts: WebhookParts, signal: AbortSignal): Promise<void> {
  const outages = new Outages(parts, 'no events of webhooks were found')
  const changed = watchStates(parts)
  let due: ReadonlySet<string> | 'all' = 'all'
  while (!signal.aborted) {
    let hasMore = false
    const isDone = await outages.attempt(async () => (hasMore = await findEvents(parts, due)))
    due = isDone && parts.caches.isReady() ? changed.take() : 'all'
    if (!hasMore) await parts.clock.sleep(ROUND_MILLISECONDS, signal)
  }
  changed.close()
}

async function send(parts: DeliverParts, signal: AbortSignal): Promise<void> {
  const outages = new Outages(parts, 'no events are sent to webhooks')
  const deliveries = openDeliveries(parts, signal)
  while (!signal.aborted) {
    let started = 0
    await outages.attempt(async () => (started = await deliveries.start()))
    if (started > 0) continue
    // The next of a webhook is due when the one before has ended.
    const awake = new AbortController()
    void deliveries.ended().then(() => awake.abort())
    await parts.clock.sleep(ROUND_MILLISECONDS, AbortSignal.any([signal, awake.signal]))
  }
  await deliveries.settled()
}
