/** The webhook controller. A webhook that was created with kubectl gets its row in PostgreSQL, from which events are
 *  sent; the status shows what came of them. */
import { webhookChanges } from '../../../changes/webhook.ts'
import { type KubernetesRequest, listKubernetesRequests } from '../../../db/request/index.ts'
import { findWebhook, removeWebhook, type WebhookRow } from '../../../db/webhook/index.ts'
import { defined } from '../../../domain/defined.ts'
import { deliveryStateOf } from '../../../domain/webhook/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { toSeconds } from '../../../kit/sys/clock.ts'
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

export { runWebhooks, type WebhookOptions } from './run.ts'

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
          : healthConditions('ready', 'Kept', '')),
        { type: 'Claimed', status: 'True', reason: 'Claimed', message: '' },
      ],
    },
    { do: 'wait', seconds: LOOK_SECONDS, for: 'a change' },
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
