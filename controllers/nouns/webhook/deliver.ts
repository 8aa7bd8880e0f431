/** Sends events to webhooks. Each is attempted until it is delivered, or given up after three days; a webhook whose
 *  deliveries have all failed for that long is paused, and its owners are informed. */
import { listOwnerMails } from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { enqueueMail } from '../../../db/mail/index.ts'
import {
  claimDeliveries,
  type DueDelivery,
  endDelivery,
  pauseWebhook,
  readSecrets,
  recordAttempt,
} from '../../../db/webhook/index.ts'
import { mail } from '../../../domain/mail/mails.ts'
import { en } from '../../../domain/mail/en.ts'
import {
  HTTP_GONE,
  isDelivered,
  PAUSE_AFTER_MILLISECONDS,
  retryAfterMilliseconds,
  sendsEvent,
} from '../../../domain/webhook/rules.ts'
import { signedHeaders } from '../../../domain/webhook/signature.ts'
import type { TestTrust } from '../../../integrations/public-internet/lookup.ts'
import { sendToPublic } from '../../../integrations/public-internet/send.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { requireTime } from '../../kit/lease.ts'
import type { Parts } from '../../kit/parts.ts'

export interface DeliverParts extends Pick<Parts, 'clock' | 'db' | 'log' | 'random'> {
  readonly sealing: Sealing
  /** For tests. */
  readonly trust?: TestTrust | undefined
}

const ANSWER_MILLISECONDS = 15_000
/** Longer than an attempt takes with everything around it. */
const LEASE_MILLISECONDS = 60_000
/** Deliveries in progress of one process; each is a connection that mostly waits. */
const DELIVERIES_MAXIMUM = 256

/** The deliveries that a process has in progress. */
export interface Deliveries {
  /** Starts what is due. Answers how many were started. Throws Unavailable. */
  start(): Promise<number>
  /** Resolves when one of those in progress has ended, or when the signal aborts. */
  ended(): Promise<void>
  /** Waits for those in progress. */
  settled(): Promise<void>
}

export function openDeliveries(parts: DeliverParts, signal: AbortSignal): Deliveries {
  const inProgress = new Set<Promise<void>>()
  let end = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => end.resolve(), { once: true })
  return {
    ended: () => end.promise,
    async start() {
      if (!signal.aborted) end = Promise.withResolvers<void>()
      const room = DELIVERIES_MAXIMUM - inProgress.size
      if (room <= 0) return 0
      const now = parts.clock.now()
      const leasedUntil = new Date(now.getTime() + LEASE_MILLISECONDS)
      const due = await orUnavailable(claimDeliveries(parts.db, { now, leasedUntil, limit: room }))
      for (const delivery of due) {
        const work = deliver(parts, delivery, signal).catch((error: unknown) =>
          // What came of it is unknown: it is sent again after its lease.
          parts.log.info('the result of a delivery was not recorded', { webhook_id: delivery.webhookId, error }),
        )
        inProgress.add(work)
        void work.then(() => {
          inProgress.delete(work)
          end.resolve()
        })
      }
      return due.length
    },
    async settled() {
      await Promise.all(inProgress)
    },
  }
}

/** One attempt. Throws Unavailable when its result cannot be recorded. */
async function deliver(parts: DeliverParts, delivery: DueDelivery, signal: AbortSignal): Promise<void> {
  const { clock, db, random } = parts
  if (!sendsEvent(delivery.patterns, delivery.type)) {
    const end = { now: clock.now(), error: 'the webhook no longer selects this event' }
    return await orUnavailable(db.transaction().execute((tx) => endDelivery(tx, delivery, end)))
  }
  const { status, error } = await attempt(parts, delivery, signal)
  if (signal.aborted && status === null) return
  const now = clock.now()
  const wait = error === null ? undefined : retryAfterMilliseconds(delivery.failures + 1, random.fraction())
  const nextAttemptAt = wait === undefined ? undefined : new Date(now.getTime() + wait)
  await orUnavailable(
    db.transaction().execute(async (tx) => {
      const failingSince = await recordAttempt(tx, delivery, { now, status, error, nextAttemptAt })
      if (failingSince == null) return
      const isGone = status === HTTP_GONE
      const isLong = now.getTime() - failingSince.getTime() >= PAUSE_AFTER_MILLISECONDS
      if (!isGone && !isLong) return
      const pause = isGone ? 'gone' : 'failing'
      const reason = en.pauses[pause]
      const paused = await pauseWebhook(tx, delivery, { now, reason })
      if (paused === undefined) return
      const { accountId, webhookId } = delivery
      for (const recipient of await listOwnerMails(tx, accountId))
        await enqueueMail(tx, {
          id: newUuid(random),
          recipient,
          mail: mail('webhook_paused', { reason: pause }),
          createdAt: now,
        })
      await appendAudit(tx, pauseEntry(accountId, webhookId, { ...paused, reason }, newUuid(random)), parts)
    }),
  )
}

const pauseEntry = (accountId: string, webhookId: string, detail: Record<string, string>, requestId: string) => ({
  account_id: accountId,
  actor_email: 'system:webhooks',
  actor_kind: 'system' as const,
  user_id: null,
  staff_id: null,
  token_id: null,
  token_name: null,
  action: 'webhook.paused',
  resource_type: 'webhook',
  resource_id: webhookId,
  detail,
  outcome: 'success' as const,
  source_ip: '',
  user_agent: '',
  request_id: requestId,
  changes: [],
})

interface Outcome {
  readonly status: number | null
  readonly error: string | null
}

/** A secret that cannot be opened, a refused address and a lost connection are failures to deliver. Throws Unavailable.
 */
async function attempt(
  { clock, db, log, sealing, trust }: DeliverParts,
  { url, body, eventId, leasedUntil, ...id }: DueDelivery,
  signal: AbortSignal,
): Promise<Outcome> {
  const secrets = await orUnavailable(readSecrets(db, sealing, id, clock.now()))
  const now = clock.now()
  requireTime(now, leasedUntil, ANSWER_MILLISECONDS)
  if (secrets === undefined) {
    log.warn('the secret of a webhook cannot be opened: its sealing key is missing', { webhook_id: id.webhookId })
    return { status: null, error: 'the platform cannot open the secret of the webhook: rotate it' }
  }
  if (secrets.length === 0) return { status: null, error: 'the webhook was deleted' }
  const headers = { 'content-type': 'application/json', ...signedHeaders({ id: eventId, at: now, body }, secrets) }
  try {
    const request = {
      method: 'POST' as const,
      url,
      headers,
      body,
      timeoutMilliseconds: ANSWER_MILLISECONDS,
      clock,
      signal,
      trust,
    }
    const status = await sendToPublic(request)
    return { status, error: isDelivered(status) ? null : `the receiver answered ${status}` }
  } catch (error) {
    return { status: null, error: error instanceof Error ? error.message : String(error) }
  }
}
