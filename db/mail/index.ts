/** The mail outbox. Mails are inserted in the transaction that causes them and sent afterwards, at least once. */
import { type Language, languageOf } from '../../domain/mail/language.ts'
import { type Mail, MAIL_NAMES } from '../../domain/mail/mails.ts'
import { writeMail } from '../../domain/mail/write.ts'
import type { Queries } from '../kit/open.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

/** A mail is abandoned after this many failures, with its last error. */
const MAIL_ATTEMPTS_MAXIMUM = 20

export interface QueuedMail {
  readonly id: string
  readonly recipient: string
  readonly mail: Mail
  /** For a recipient who has chosen no language; that of the deployment when absent. */
  readonly language?: Language | undefined
  readonly createdAt: Date
}

export interface ClaimedMail {
  readonly id: string
  readonly recipient: string
  /** Undefined for a mail of another release, which has only its text. */
  readonly mail: Mail | undefined
  /** What its recipient has chosen, or else what it was queued with. */
  readonly language: Language | undefined
  /** In English and plain. */
  readonly subject: string
  readonly body: string
  readonly createdAt: Date
  readonly attempts: number
}

/** Does nothing when a mail with this id is queued or was sent. The English text is for processes of another release,
 *  which may not know the mail. */
export async function enqueueMail(
  queries: Queries,
  { id, recipient, mail, language, createdAt }: QueuedMail,
): Promise<void> {
  await queries
    .insertInto('email_outbox')
    .values({
      id,
      recipient,
      ...writeMail(mail, 'en'),
      name: mail.name,
      fields: JSON.stringify(mail.fields),
      language: language ?? null,
      created_at: createdAt,
      next_attempt_at: createdAt,
      last_error: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Whether the mail was queued after the time. */
export async function wasEnqueued(queries: Queries, id: string, after: Date): Promise<boolean> {
  const mail = selectWhere(queries, 'email_outbox', { id }).select('id').where('created_at', '>', after)
  return (await mail.executeTakeFirst()) !== undefined
}

/** Leases the mail that is due longest until `leaseUntil`. */
export async function claimMail(queries: Queries, now: Date, leaseUntil: Date): Promise<ClaimedMail | undefined> {
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
    .returning(['id', 'recipient', 'subject', 'body', 'name', 'fields', 'language', 'created_at', 'attempts'])
    .executeTakeFirst()
  if (row === undefined) return undefined
  const { name, fields, ...rest } = camelRow(row)
  const language = (await findLanguage(queries, rest.recipient)) ?? languageOf(rest.language ?? '')
  return { ...rest, mail: mailOf(name, fields), language }
}

function mailOf(stored: string | null, fields: string | null): Mail | undefined {
  const name = MAIL_NAMES.find((each) => each === stored)
  return name === undefined ? undefined : { name, fields: JSON.parse(fields ?? '{}') as Mail['fields'] } // as queued
}

/** The language that the user with the address has chosen in the portal. */
async function findLanguage(queries: Queries, email: string): Promise<Language | undefined> {
  const row = await queries
    .selectFrom('user_preference')
    .innerJoin('app_user', 'app_user.id', 'user_preference.user_id')
    .select('preferences')
    .where('app_user.email', '=', email)
    .executeTakeFirst()
  const { locale } = JSON.parse(row?.preferences ?? '{}') as { readonly locale?: unknown } // an object, as it was set
  return typeof locale === 'string' ? languageOf(locale) : undefined
}

/** The mail was sent: deletes its text, which may contain a secret. */
export async function markMailSent(queries: Queries, id: string, now: Date): Promise<void> {
  await updateWhere(queries, 'email_outbox', { id })
    .set({ sent_at: now, body: '', fields: null, last_error: null })
    .execute()
}

const ERROR_CHARACTERS_MAXIMUM = 1_000

/** Sending is retried from `retryAt` on. */
export async function markMailFailed(queries: Queries, id: string, retryAt: Date, error: string): Promise<void> {
  await updateWhere(queries, 'email_outbox', { id })
    .set({ next_attempt_at: retryAt, last_error: error.slice(0, ERROR_CHARACTERS_MAXIMUM) })
    .execute()
}

/** Removes mails that were sent before the instant, and what a process of the release before has left of those that it
 *  sent: it knows no fields, which may contain a secret. */
export async function forgetOldMails(queries: Queries, before: Date): Promise<void> {
  await queries
    .updateTable('email_outbox')
    .set({ fields: null })
    .where('sent_at', 'is not', null)
    .where('fields', 'is not', null)
    .execute()
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
