/** Pushes audit logs to the collectors and buckets of their accounts, in batches: one at a time for each sink, so that
 *  entries arrive in their order. A batch that may have arrived is sent again under the same id. */
import { listOwnerMails } from '../../../db/account/index.ts'
import {
  claimSinks,
  type ClaimedSink,
  countSinks,
  noteNotice,
  openSecrets,
  readBatch,
  recordSinkAttempt,
  type SinkCounts,
  type SinkSecrets,
} from '../../../db/audit-sink/index.ts'
import { enqueueMail } from '../../../db/mail/index.ts'
import type { AuditEntry } from '../../../domain/audit/chain.ts'
import {
  type Batch,
  BATCH_ENTRIES_MAXIMUM,
  batchIdOf,
  NOTICE_AFTER_MILLISECONDS,
  objectNameOf,
  PAUSE_MILLISECONDS,
  RETRY,
} from '../../../domain/audit-sink/rules.ts'
import { mail } from '../../../domain/mail/mails.ts'
import { isDelivered } from '../../../domain/webhook/rules.ts'
import { signedHeaders } from '../../../domain/webhook/signature.ts'
import type { TestTrust } from '../../../integrations/public-internet/lookup.ts'
import { sendToPublic } from '../../../integrations/public-internet/send.ts'
import { signRequest } from '../../../kit/chunks/sign-request.ts'
import { escapeForSignature } from '../../../kit/s3/signature.ts'
import { backoffMilliseconds } from '../../../kit/sys/backoff.ts'
import { byTheMachine } from '../../../kit/sys/clock.ts'
import { Outages } from '../../../kit/sys/outages.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { requireTime } from '../../kit/lease.ts'
import type { Parts } from '../../kit/parts.ts'

export interface AuditSinkOptions {
  readonly sealing?: Sealing
  /** For tests. */
  readonly trust?: TestTrust | undefined
  /** Called after each look at what is late. */
  readonly onAuditSinks?: (counts: SinkCounts) => void
}
type SinkParts = Pick<Parts, 'clock' | 'db' | 'log' | 'random'> & AuditSinkOptions

const ROUND_MILLISECONDS = 1_000
const LOOK_MILLISECONDS = 60_000
const ANSWER_MILLISECONDS = 30_000
/** Longer than an attempt takes with everything around it. */
const LEASE_MILLISECONDS = 120_000
/** Sinks that a process sends to at the same time. */
const SINKS_MAXIMUM = 64

/** Sends batches until the signal aborts, where there is a key to open secrets with. Never throws. */
export async function runAuditSinks(parts: SinkParts, signal: AbortSignal): Promise<void> {
  const { clock, db, sealing } = parts
  if (sealing?.isAvailable !== true) return
  const outages = new Outages(parts, 'no audit log is pushed')
  const looks = new Outages(parts, 'what audit sinks lack is not known')
  const inProgress = new Set<Promise<void>>()
  let lookAt = 0
  while (!signal.aborted) {
    await outages.attempt(async () => {
      for (const work of await startBatches({ ...parts, sealing }, SINKS_MAXIMUM - inProgress.size, signal)) {
        inProgress.add(work)
        void work.then(() => inProgress.delete(work))
      }
    })
    if (clock.monotonicMilliseconds() >= lookAt) {
      lookAt = clock.monotonicMilliseconds() + LOOK_MILLISECONDS
      await looks.attempt(async () => parts.onAuditSinks?.(await orUnavailable(countSinks(db, clock.now()))))
    }
    await clock.sleep(ROUND_MILLISECONDS, signal)
  }
  await Promise.all(inProgress)
}

/** Starts the batches that are due, at most `room`. Throws Unavailable; the promises never reject. */
export async function startBatches(
  parts: SinkParts & { readonly sealing: Sealing },
  room: number,
  signal: AbortSignal,
): Promise<readonly Promise<void>[]> {
  if (room <= 0) return []
  const now = parts.clock.now()
  const leasedUntil = new Date(now.getTime() + LEASE_MILLISECONDS)
  const sinks = await orUnavailable(claimSinks(parts.db, { now, leasedUntil, limit: room }))
  return sinks.map((sink) =>
    sendBatch(parts, sink, signal).catch((error: unknown) =>
      // What came of it is unknown: the same batch is sent again after the lease.
      parts.log.info('the result of a batch of audit entries was not recorded', { sink_id: sink.id, error }),
    ),
  )
}

async function sendBatch(
  parts: SinkParts & { readonly sealing: Sealing },
  sink: ClaimedSink,
  signal: AbortSignal,
): Promise<void> {
  const { clock, db, random } = parts
  const { firstSequence, lastSequence } = sink.batch
  const count = lastSequence - firstSequence + 1
  const outcome = await attempt(parts, sink, signal)
  if (signal.aborted && outcome.status === null) return
  const now = clock.now()
  const wait =
    outcome.error !== null
      ? backoffMilliseconds(sink.failures, RETRY, random)
      : count === BATCH_ENTRIES_MAXIMUM
        ? 0
        : PAUSE_MILLISECONDS[sink.type]
  const recorded = await orUnavailable(
    recordSinkAttempt(db, sink, { ...outcome, now, nextAttemptAt: new Date(now.getTime() + wait) }),
  )
  const { failingSince = null, noticedAt = null } = recorded ?? {}
  if (failingSince === null || noticedAt !== null) return
  if (now.getTime() - failingSince.getTime() < NOTICE_AFTER_MILLISECONDS) return
  await orUnavailable(
    db.transaction().execute(async (tx) => {
      await noteNotice(tx, sink, now)
      for (const recipient of await listOwnerMails(tx, sink.account_id))
        await enqueueMail(tx, { id: newUuid(random), recipient, mail: mail('audit_sink_fails', {}), createdAt: now })
    }),
  )
}

interface Outcome {
  readonly status: number | null
  readonly error: string | null
}

/** Secrets that cannot be opened, missing entries, a refused address and a lost connection are failures. Throws
 *  Unavailable. */
async function attempt(
  { clock, db, log, sealing, trust }: SinkParts & { readonly sealing: Sealing },
  sink: ClaimedSink,
  signal: AbortSignal,
): Promise<Outcome> {
  const secrets = openSecrets(sealing, sink)
  if (secrets === undefined) {
    log.warn('the secrets of an audit sink cannot be opened: a sealing key is missing', { sink_id: sink.id })
    return { status: null, error: 'the platform cannot open the secrets of the sink: contact its operator' }
  }
  const entries = await orUnavailable(readBatch(db, sink))
  if (!isGapless(entries, sink.batch)) {
    log.warn('entries of the audit log that a sink sends next are missing', { sink_id: sink.id, ...sink.batch })
    return {
      status: null,
      error: 'entries of the log that come next are missing: contact the operator of the platform',
    }
  }
  requireTime(clock.now(), sink.leasedUntil, ANSWER_MILLISECONDS)
  try {
    const request = requestOf(sink, { entries, secrets }, clock.now())
    const status = await sendToPublic({ ...request, timeoutMilliseconds: ANSWER_MILLISECONDS, clock, signal, trust })
    return { status, error: isDelivered(status) ? null : `the receiver answered ${status}` }
  } catch (error) {
    return { status: null, error: error instanceof Error ? error.message : String(error) }
  }
}

const isGapless = (entries: readonly AuditEntry[], { firstSequence, lastSequence }: Batch): boolean =>
  entries.length === lastSequence - firstSequence + 1 &&
  entries.every(({ sequence }, index) => sequence === firstSequence + index)

/** The request of a batch: entries as in the export. What is beside them is in headers, of a bucket in the metadata of
 *  the object. */
function requestOf(
  sink: ClaimedSink,
  { entries, secrets }: { readonly entries: readonly AuditEntry[]; readonly secrets: SinkSecrets },
  at: Date,
) {
  const { account_id: accountId, batch, bucket, prefix, region, access_key_id: accessKeyId, type, url } = sink
  const body = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
  const facts = {
    ...signedHeaders({ id: batchIdOf(sink.id, batch), at, body }, [secrets.secret]),
    'audit-account-id': accountId,
    'audit-first-sequence': String(batch.firstSequence),
    'audit-last-sequence': String(batch.lastSequence),
    'audit-previous-hash': entries[0]?.previous_hash ?? '',
    'audit-last-hash': entries.at(-1)?.entry_hash ?? '',
  }
  const content = { 'content-type': 'application/x-ndjson' }
  if (type === 'https') return { method: 'POST' as const, url, headers: { ...content, ...facts }, body }
  const name = objectNameOf(prefix ?? '', accountId, batch)
  const path = [bucket ?? '', ...name.split('/')].map(escapeForSignature).join('/')
  const target = new URL(`/${path}`, url)
  const metadata = Object.fromEntries(Object.entries(facts).map(([key, value]) => [`x-amz-meta-${key}`, value]))
  const credentials = {
    accessKeyId: accessKeyId ?? '',
    secretAccessKey: secrets.accessKey ?? '',
    region: region ?? '',
  }
  const headers = { ...content, ...metadata }
  const signed = signRequest(
    { method: 'PUT', url: target, headers, body: Buffer.from(body) },
    credentials,
    byTheMachine(at),
  )
  return { method: 'PUT' as const, url: target.href, headers: signed, body }
}
