/** The mail outbox. Mails are inserted in the transaction that causes them and sent afterwards, at least once. */
import type { Queries } from '../kit/open.ts'
import { updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

/** A mail is abandoned after this many failures, with its last error. */
const MAIL_ATTEMPTS_MAXIMUM = 20

export interface Mail {
  readonly id: string
  readonly recipient: string
  readonly subject: string
  /** Plain text. */
  readonly body: string
  readonly createdAt: Date
}

/** Does nothing when a mail with this id is queued or was sent. */
export async function enqueueMail(queries: Queries, mail: Mail): Promise<void> {
  await queries
    .insertInto('email_outbox')
    .values({
      id: mail.id,
      recipient: mail.recipient,
      subject: mail.subject,
      body: mail.body,
      created_at: mail.createdAt,
      next_attempt_at: mail.createdAt,
      last_error: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Leases the mail that is due longest until `leaseUntil`. */
export async function claimMail(
  queries: Queries,
  now: Date,
  leaseUntil: Date,
): Promise<(Mail & { readonly attempts: number }) | undefined> {
  const row = await queries
    .updateTable('email_outbox')
    .set((set) => ({ next_attempt_at: leaseUntil, attempts: set('attempts', '+', 1) }))
    .where('id', '=', (select) =>
      select
        .selectFrom('email_outbox')
        .select('id')
        .where('sent_at', 'is', null)
        .where('next_attempt_at', '<=', now)
        .where('attempts', '<', MAIL_ATTEMPTS_MAXIMUM)
        .orderBy('next_attempt_at')
        .limit(1)
        .forUpdate()
        .skipLocked(),
    )
    .returning(['id', 'recipient', 'subject', 'body', 'created_at', 'attempts'])
    .executeTakeFirst()
  return row && camelRow(row)
}

/** The mail was sent: deletes its text, which may contain a secret. */
export async function markMailSent(queries: Queries, id: string, now: Date): Promise<void> {
  await updateWhere(queries, 'email_outbox', { id }).set({ sent_at: now, body: '', last_error: null }).execute()
}

const ERROR_CHARACTERS_MAXIMUM = 1_000

/** Sending is retried from `retryAt` on. */
export async function markMailFailed(queries: Queries, id: string, retryAt: Date, error: string): Promise<void> {
  await updateWhere(queries, 'email_outbox', { id })
    .set({ next_attempt_at: retryAt, last_error: error.slice(0, ERROR_CHARACTERS_MAXIMUM) })
    .execute()
}

/** Removes mails that were sent before the instant. */
export async function forgetOldMails(queries: Queries, before: Date): Promise<void> {
  await queries.deleteFrom('email_outbox').where('sent_at', '<', before).execute()
}

/** Number of queued mails, for the metric. */
export async function countWaitingMails(queries: Queries): Promise<number> {
  const counted = await queries
    .selectFrom('email_outbox')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('sent_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(counted.count)
}
