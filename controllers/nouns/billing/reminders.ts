/** Mails about what expires soon: the payment method that invoices are charged to, and credits. Each is sent once: its
 *  id is derived from its subject. */
import { findQueued, listEndingCredits, listEndingMethods } from '../../../db/billing/index.ts'
import { sha256Hex } from '../../../domain/audit/chain.ts'
import { type Mail, mail } from '../../../domain/mail/mails.ts'
import type { Parts } from '../../kit/parts.ts'
import { mailOwner } from './invoice-state.ts'

const DAY_MILLISECONDS = 86_400_000
/** Both are shorter than the time for which sent mails are remembered. */
const METHOD_DAYS = 14
const CREDIT_DAYS = 7
const BATCH = 500
const MONTH_LENGTH = 'YYYY-MM'.length
const DATE_LENGTH = 'YYYY-MM-DD'.length

type ReminderParts = Pick<Parts, 'clock' | 'db' | 'random'>

interface Reminder {
  /** Id of the mail. */
  readonly id: string
  readonly accountId: string
  readonly text: Mail
}

export async function sendReminders(parts: ReminderParts): Promise<void> {
  const { clock, db } = parts
  const now = clock.now()
  const within = (days: number) => ({ after: now, before: new Date(now.getTime() + days * DAY_MILLISECONDS) })
  await sendAll(parts, (place) => listEndingMethods(db, within(METHOD_DAYS), place, BATCH), ofMethod)
  await sendAll(parts, (place) => listEndingCredits(db, within(CREDIT_DAYS), place, BATCH), ofCredit)
}

type PageReader<Item> = (place: string | undefined) => Promise<readonly Item[]>

/** However many there are: mails that were sent before never block others. */
async function sendAll<Item>(
  parts: ReminderParts,
  list: PageReader<Item>,
  toReminder: (item: Item) => Reminder & { readonly place: string },
): Promise<void> {
  let place: string | undefined
  do {
    const reminders = (await list(place)).map(toReminder)
    const sent = await findQueued(
      parts.db,
      reminders.map(({ id }) => id),
    )
    for (const { id, accountId, text } of reminders.filter((each) => !sent.has(each.id)))
      await parts.db.transaction().execute((tx) => mailOwner(tx, parts, accountId, text, id))
    place = reminders.length === BATCH ? reminders.at(-1)?.place : undefined
  } while (place !== undefined)
}

type Ending<List extends (...args: never) => Promise<readonly unknown[]>> = Awaited<ReturnType<List>>[number]

function ofMethod({ accountId, methodId, expiresAt }: Ending<typeof listEndingMethods>) {
  const month = new Date(expiresAt.getTime() - 1).toISOString().slice(0, MONTH_LENGTH)
  const id = mailIdOf(`method ${accountId} ${methodId} ${month}`)
  return { id, accountId, text: mail('payment_method_expires', { month }), place: accountId }
}

function ofCredit({ accountId, id, label, leftCents, expiresAt }: Ending<typeof listEndingCredits>) {
  const date = expiresAt.toISOString().slice(0, DATE_LENGTH)
  const text = mail('credit_expires', { credit: label, amount: leftCents, date })
  return { id: mailIdOf(`credit ${id}`), accountId, text, place: id }
}

/** A UUID (version 8, RFC 9562): the same for the same subject. */
function mailIdOf(subject: string): string {
  const hex = sha256Hex(subject)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
