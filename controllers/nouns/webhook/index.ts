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
/** Whoever creates it or has read that it has no secret makes one. */
const SECRET_SECONDS = 5

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
export function plan(webhook: WebhookObject, observed: Observed): readonly WebhookAction[] {
  return [...auditRequests(webhook, observed.requests), ...decide(webhook, observed)]
}

function decide(
  { metadata: { deletionTimestamp }, spec, status }: WebhookObject,
  { accountId, row }: Observed,
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
    { do: 'wait', seconds: row.hasSecret ? LOOK_SECONDS : SECRET_SECONDS, for: 'a change' },
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

/** Finds and sends events until the signal aborts, where there is a key to seal secrets with. Never throws. */
export async function runWebhooks(parts: WebhookParts, signal: AbortSignal): Promise<void> {
  const { clock, sealing } = parts
  if (sealing?.isAvailable !== true) return
  await Promise.all([find(parts, signal), send({ ...parts, sealing }, signal), look(parts, signal)])
  async function look({ db, onDeliveries }: WebhookParts, over: AbortSignal): Promise<void> {
    const outages = new Outages(parts, 'the log of webhooks was not pruned')
    while (!over.aborted) {
      await outages.attempt(async () => {
        await orUnavailable(pruneDeliveries(db, clock.now()))
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
