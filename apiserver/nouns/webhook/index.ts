/** Webhooks of an account. Answers come from PostgreSQL, where events are delivered from; the object in Kubernetes
 *  shows the same to kubectl. Secrets are shown once: when they are made. */
import { isDeepStrictEqual } from 'node:util'
import { webhookChanges } from '../../../changes/webhook.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import {
  countPending,
  findListedWebhook,
  listWebhookRows,
  rotateSecret,
  type WebhookRow,
} from '../../../db/webhook/index.ts'
import { forbidden, notFound, unavailable } from '../../../domain/problem.ts'
import { deliveryStateOf, selectsBilling } from '../../../domain/webhook/rules.ts'
import { SECRET_BYTES, secretText } from '../../../domain/webhook/signature.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { isDryRun } from '../../../kit/sys/dry-run.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { accountNamespace, accountOfNamespace } from '../../../resources/index.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import * as routes from '../../../resources/webhook/index.ts'
import { Webhook, type WebhookSpec, type WebhookStatus, type WebhookView } from '../../../resources/webhook/index.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { type AdmissionRules, kind } from '../../kit/admission/kind.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { makerOf } from '../../kit/create.ts'
import { pageOfRows } from '../../kit/list/page.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { etagOfObject } from '../../kit/plain/objects.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { deliveryEndpoints, requireReader, requireRow } from './deliveries.ts'

type WebhookParts = Parts & { readonly sealing: Sealing }
type WebhookObject = KubeObject<WebhookSpec, WebhookStatus>

/** Those that have a row. */
const openWebhooks = (parts: WebhookParts) => ({
  async read(accountId: string, webhookId: string): Promise<WebhookObject> {
    await requireRow(parts, accountId, webhookId)
    const webhook = await parts.store.get(Webhook, { namespace: accountNamespace(accountId), name: webhookId })
    if (webhook === undefined) throw notFound('webhook')
    return webhook
  },
  factsOf: (webhook: WebhookObject) => webhookChanges.factsOf(storedOf(webhook)),
  async viewOf(webhook: WebhookObject): Promise<WebhookView> {
    const accountId = accountOfNamespace(webhook.metadata.namespace ?? '') ?? ''
    return viewOf(await rowOf(parts, accountId, webhook), await countPending(parts.db, accountId))
  },
})

/** Of the object. A dry run writes no row: there it has what the object says. */
async function rowOf(parts: Parts, accountId: string, { metadata, spec }: WebhookObject): Promise<WebhookRow> {
  const { name: id, creationTimestamp } = metadata
  if (!isDryRun()) return requireRow(parts, accountId, id)
  const known = await findListedWebhook(parts.db, { accountId, webhookId: id })
  return { ...UNSENT, ...known, ...spec, id, createdAt: known?.createdAt ?? new Date(creationTimestamp ?? 0) }
}

const UNSENT = {
  hasSecret: true,
  failingSince: null,
  pausedAt: null,
  pauseReason: null,
  deliveredAt: null,
  removedAt: null,
}

const viewOf = (row: WebhookRow, pending: ReadonlyMap<string, number>): WebhookView => ({
  id: row.id,
  name: row.name,
  url: row.url,
  events: [...row.events],
  enabled: row.enabled,
  state: deliveryStateOf(row),
  pause_reason: row.pauseReason,
  failing_since: row.failingSince?.toISOString() ?? null,
  last_delivered_at: row.deliveredAt?.toISOString() ?? null,
  pending_deliveries: pending.get(row.id) ?? 0,
  created_at: row.createdAt.toISOString(),
})

/** Throws 503 where nothing can be sealed. */
function requireSealing({ sealing }: WebhookParts): void {
  if (!sealing.isAvailable)
    throw unavailable('not_configured', 'Webhooks need sealing keys, which this deployment does not have.')
}

const newSecret = ({ random }: Pick<Parts, 'random'>): string => secretText(random.bytes(SECRET_BYTES))

function webhookEndpoints(parts: WebhookParts): readonly Endpoint[] {
  const { clock, db, random, sealing } = parts
  const webhooks = openWebhooks(parts)
  const create = makerOf(parts, webhookChanges, {
    ...webhooks,
    async createdOf(created: WebhookObject) {
      const { name: webhookId, namespace = '' } = created.metadata
      const id = { accountId: accountOfNamespace(namespace) ?? '', webhookId }
      const secret = newSecret(parts)
      await db.transaction().execute((tx) => rotateSecret(tx, sealing, id, { secret, now: clock.now() }))
      return { webhook: await webhooks.viewOf(created), secret }
    },
  })
  return [
    customerEndpoint(routes.listWebhooks, async (call) => {
      const { accountId } = call.caller
      const pending = await countPending(db, accountId)
      return pageOfRows(
        parts,
        call,
        (after, count) => listWebhookRows(db, accountId, after, count),
        (rows) => rows.map((row) => viewOf(row, pending)),
      )
    }),
    customerEndpoint(routes.getWebhook, async ({ caller: { accountId }, params }) => {
      const webhook = await webhooks.read(accountId, params.id)
      return {
        status: 200,
        body: { webhook: await webhooks.viewOf(webhook) },
        headers: { etag: etagOfObject(webhook) },
      }
    }),
    customerEndpoint(routes.createWebhook, (call) => {
      const { name, url, events, enabled } = call.body
      requireReader(call.caller, events)
      requireSealing(parts)
      return create(call, { name: name ?? URL.parse(url)?.hostname.slice(0, NAME_MAXIMUM) ?? '', url, events, enabled })
    }),
    ...changeEndpoints(parts, webhookChanges, webhooks).map((endpoint) => guarded(parts, endpoint)),
    customerEndpoint(routes.rotateWebhookSecret, async (call) => {
      const { accountId } = call.caller
      const row = await requireRow(parts, accountId, call.params.id)
      requireReader(call.caller, row.events)
      requireSealing(parts)
      const secret = newSecret(parts)
      const until = await db.transaction().execute(async (tx) => {
        const found = await rotateSecret(tx, sealing, { accountId, webhookId: row.id }, { secret, now: clock.now() })
        if (found === undefined) throw notFound('webhook')
        await appendAudit(tx, auditEntryOf(call, { resourceId: row.id }), { clock, random })
        return found
      })
      return { status: 200, body: { secret, previous_valid_until: until?.toISOString() ?? null } }
    }),
    ...deliveryEndpoints(parts),
  ]
}

const NAME_MAXIMUM = 100

/** As the endpoint, for callers who may read what the webhook is sent. */
const guarded = (parts: WebhookParts, endpoint: Endpoint): Endpoint => {
  const { route } = endpoint
  if (route.id !== routes.updateWebhook.id) return endpoint
  return customerEndpoint(routes.updateWebhook, async (call) => {
    const { events } = await requireRow(parts, call.caller.accountId, call.params.id)
    requireReader(call.caller, events, call.body.events ?? [])
    return endpoint.handle(call as never) // parsed for the very same route
  })
}

const rules = admissionOf(webhookChanges)
/** The rights of kubectl end at kinds: nobody is known to be a reader of bills there. */
function refuseBilling(...webhooks: readonly WebhookObject[]): void {
  if (webhooks.some(({ spec }) => selectsBilling(spec.events)))
    throw forbidden('Webhooks with events of billing are created and changed through the API only.')
}
const admission: AdmissionRules<WebhookSpec, WebhookStatus> = {
  ...rules,
  async create(parts, webhook) {
    const admitted = (await rules.create?.(parts, webhook)) ?? []
    refuseBilling(webhook)
    return admitted
  },
  async update(parts, webhook, before) {
    const admitted = (await rules.update?.(parts, webhook, before)) ?? []
    if (!isDeepStrictEqual(webhook.spec, before.spec)) refuseBilling(webhook, before)
    return admitted
  },
}

export const webhook = noun<WebhookParts>({
  name: 'webhook',
  kinds: [kind(Webhook, { access: 'write', admission })],
  endpoints: webhookEndpoints,
})
