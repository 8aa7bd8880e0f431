/** Metrics of mails and of the audit log for operators. They are read from the database at each scrape, so every
 *  replica reports the same; NaN while the database does not answer. */
import { countUnverified } from '../../db/audit/index.ts'
import type { Database } from '../../db/kit/open.ts'
import { countWaitingMails } from '../../db/mail/index.ts'
import { gaugesIn, type Registry } from '../../kit/sys/metrics.ts'

export function openIdentityMetrics(db: Database, registry: Registry): void {
  const expose = gaugesIn(registry)
  const gauge = (name: string, help: string, read: () => Promise<number>) =>
    expose(name, help, () => read().catch(() => Number.NaN))
  gauge('svccloud_email_outbox_pending', 'Mails that wait to be sent', () => countWaitingMails(db))
  gauge(
    'svccloud_audit_unverified_entries',
    'Audit entries that no verification has reached yet',
    async () => (await countUnverified(db)).entries,
  )
  gauge(
    'svccloud_audit_broken_accounts',
    'Accounts whose audit chain is broken',
    async () => (await countUnverified(db)).brokenAccounts,
  )
}
