/** Sends the mails of the outbox. Any number of replicas may run it: one leases a mail at a time, retries it with
 *  back-off, and it is sent at least once. */
import { claimMail, forgetOldMails, markMailFailed, markMailSent } from '../../db/mail/index.ts'
import type { Database } from '../../db/kit/open.ts'
import type { Language } from '../../domain/mail/language.ts'
import { type MailStyle, writeMail } from '../../domain/mail/write.ts'
import { backoffMilliseconds } from '../../kit/sys/backoff.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import { Outages } from '../../kit/sys/outages.ts'
import type { MailTransport } from './transport.ts'

const IDLE_MILLISECONDS = 500
const LEASE_MILLISECONDS = 120_000
const RETRY = { baseMilliseconds: 5_000, maximumMilliseconds: 4 * 3_600_000 }
/** Two minutes of attempts; then somebody should know. */
const FAILURES_TOLERATED = 5
const KEPT_MILLISECONDS = 30 * 86_400_000

export interface MailWorkerParts {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly transport: MailTransport
  /** In the format of the From header: `Name <address>` or an address. */
  readonly from: string
  /** Of those who have chosen no language. */
  readonly language: Language
  readonly style: MailStyle
}

/** Works until the signal aborts. */
export async function runMailWorker(parts: MailWorkerParts, signal: AbortSignal): Promise<void> {
  const { clock } = parts
  const outages = new Outages(parts, 'the outbox could not be read')
  let failures = 0
  while (!signal.aborted) {
    let isIdle = true
    try {
      isIdle = !(await sendOne(parts))
      failures = 0
      outages.over()
    } catch (error) {
      failures += 1
      outages.failed(error)
    }
    if (isIdle)
      await clock.sleep(failures === 0 ? IDLE_MILLISECONDS : backoffMilliseconds(failures, RETRY, parts.random), signal)
  }
  parts.transport.close()
}

/** Sends the mail that has been due the longest; false when none is. */
export async function sendOne(parts: MailWorkerParts): Promise<boolean> {
  const { db, clock, random, log, transport, from } = parts
  const now = clock.now()
  const mail = await claimMail(db, now, new Date(now.getTime() + LEASE_MILLISECONDS))
  if (mail === undefined) return false
  try {
    const { id, recipient: to, createdAt: at } = mail
    const { subject, body: text } =
      mail.mail === undefined ? mail : writeMail(mail.mail, mail.language ?? parts.language, parts.style)
    await transport.send({ id, from, to, subject, text, at })
  } catch (error) {
    const level = mail.attempts > FAILURES_TOLERATED ? 'warn' : 'info'
    log[level]('a mail was not sent', { error, mail_id: mail.id, attempts: mail.attempts })
    const waitMilliseconds = backoffMilliseconds(mail.attempts, RETRY, random)
    await markMailFailed(
      db,
      mail.id,
      new Date(clock.now().getTime() + waitMilliseconds),
      error instanceof Error ? error.message : String(error),
    )
    return true
  }
  await markMailSent(db, mail.id, clock.now())
  await forgetOldMails(db, new Date(now.getTime() - KEPT_MILLISECONDS))
  return true
}
