/** Applies the state of an invoice at the payment processor: its payment status, the account's standing and a mail. */
import type { Transaction } from 'kysely'
import { appendAudit } from '../../../db/audit/index.ts'
import { adjustSuspension, type BilledChange, readPayer, recordBilled } from '../../../db/billing/index.ts'
import { enqueueMail } from '../../../db/mail/index.ts'
import type { Tables } from '../../../db/tables.ts'
import { type Mail, mail } from '../../../domain/mail/mails.ts'
import { GRACE_DAYS, paymentStatusOf } from '../../../domain/billing/payment.ts'
import type { ProcessorInvoice } from '../../../integrations/payments/processor.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import type { Parts } from '../../kit/parts.ts'

const DAY_MILLISECONDS = 86_400_000

type StateParts = Pick<Parts, 'clock' | 'db' | 'random'>

/** All of it in one transaction. A draft changes nothing, nor does an invoice that is not ours. */
export async function recordInvoiceState(
  parts: StateParts,
  invoiceId: string,
  invoice: ProcessorInvoice,
): Promise<void> {
  if (invoice.status === 'draft') return
  const now = parts.clock.now()
  await parts.db.transaction().execute(async (tx) => {
    const change = await recordBilled(tx, {
      invoiceId,
      processorId: invoice.id,
      status: paymentStatusOf(invoice),
      hostedUrl: invoice.hostedUrl ?? null,
      now,
    })
    if (change === undefined) return
    const text = mailOf(change, invoice.hostedUrl)
    if (text !== undefined) await mailOwner(tx, parts, change.accountId, text)
    if (change.after !== change.before) await holdAccount(tx, parts, change.accountId)
  })
}

function mailOf({ before, after, period: month, dueCents: amount }: BilledChange, page: string | undefined) {
  if (after === before) return undefined
  if (after === 'overdue') return mail('charge_failed', { month, amount, days: GRACE_DAYS, page })
  return before === 'unbilled' ? mail('invoice', { month, amount, page }) : undefined
}

/** Mails an owner of the account; nobody when it has none. */
export async function mailOwner(
  tx: Transaction<Tables>,
  { clock, random }: Pick<Parts, 'clock' | 'random'>,
  accountId: string,
  text: Mail,
  id = newUuid(random),
): Promise<void> {
  const { email } = await readPayer(tx, accountId)
  if (email !== undefined) await enqueueMail(tx, { id, recipient: email, mail: text, createdAt: clock.now() })
}

/** Invoices whose grace started before this have used it up. */
export const graceBefore = (now: Date): Date => new Date(now.getTime() - GRACE_DAYS * DAY_MILLISECONDS)

/** Suspends the account for payment or lifts that suspension, depending on its invoices; with the audit entry and a
 *  mail. A suspension by staff stays. */
export async function holdAccount(tx: Transaction<Tables>, parts: Omit<StateParts, 'db'>, accountId: string) {
  const { clock, random } = parts
  const now = clock.now()
  const done = await adjustSuspension(tx, accountId, graceBefore(now), now)
  if (done === undefined) return
  await mailOwner(tx, parts, accountId, mail(done === 'suspended' ? 'account_suspended' : 'suspension_lifted', {}))
  await appendAudit(
    tx,
    systemEntry(accountId, `account.${done === 'suspended' ? 'suspended' : 'unsuspended'}`, newUuid(random)),
    parts,
  )
}

/** The audit entry of an action that the platform took on the account by itself. */
export const systemEntry = (accountId: string, action: string, requestId: string) => ({
  account_id: accountId,
  actor_email: 'system:billing',
  actor_kind: 'system' as const,
  user_id: null,
  staff_id: null,
  token_id: null,
  token_name: null,
  action,
  resource_type: 'account',
  resource_id: accountId,
  detail: {},
  outcome: 'success' as const,
  source_ip: '',
  user_agent: '',
  request_id: requestId,
  changes: [],
})
