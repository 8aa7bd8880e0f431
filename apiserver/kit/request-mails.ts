/** Mails about requests of accounts on which staff decide. */
import type { Transaction } from 'kysely'
import { enqueueMail, wasEnqueued } from '../../db/mail/index.ts'
import { listStaffMails } from '../../db/staff/index.ts'
import type { Tables } from '../../db/tables.ts'
import type { Mail } from '../../domain/mail/mails.ts'
import { derivedId } from '../../domain/uuid.ts'
import { newUuid } from '../../kit/sys/random.ts'
import type { Parts } from './parts.ts'

export async function mailAll(
  tx: Transaction<Tables>,
  { random, clock }: Pick<Parts, 'random' | 'clock'>,
  recipients: readonly string[],
  mail: Mail,
): Promise<void> {
  for (const recipient of recipients)
    await enqueueMail(tx, { id: newUuid(random), recipient, mail, createdAt: clock.now() })
}

const HOUR_MILLISECONDS = 3_600_000

/** Mails the staff who decide, once in an hour for an account and a kind of mail: an account that makes and withdraws
 *  requests does not fill their mailboxes. Their list has every request. */
export async function mailStaff(
  tx: Transaction<Tables>,
  { clock }: Pick<Parts, 'clock'>,
  accountId: string,
  mail: Mail,
): Promise<void> {
  const now = clock.now()
  const hour = Math.floor(now.getTime() / HOUR_MILLISECONDS)
  for (const recipient of await listStaffMails(tx, 'operations')) {
    const idIn = (each: number) => derivedId(`${mail.name} ${accountId} ${recipient} ${each}`)
    // An hour of the clock may have begun a moment ago.
    if (await wasEnqueued(tx, idIn(hour - 1), new Date(now.getTime() - HOUR_MILLISECONDS))) continue
    await enqueueMail(tx, { id: idIn(hour), recipient, mail, createdAt: now })
  }
}
