import { expect, test } from 'vitest'
import { openIdentityMetrics } from '../../../apiserver/identity/metrics.ts'
import { upkeep } from '../../../apiserver/identity/upkeep.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { useDatabase } from '../../database.ts'
import { openHarness } from './harness.ts'

const database = useDatabase()

test('mails that wait, entries that are not verified and broken chains are counted', async () => {
  const { db } = database
  const registry = openRegistry({ isProcessWide: false })
  openIdentityMetrics(db, registry)
  const read = async () =>
    Object.fromEntries(
      [...(await registry.metrics()).matchAll(/^(svccloud_\w+) (\S+)$/gm)].map(([, name, value]) => [
        name,
        Number(value),
      ]),
    )
  expect(await read()).toEqual({
    svccloud_email_outbox_pending: 0,
    svccloud_audit_unverified_entries: 0,
    svccloud_audit_broken_accounts: 0,
  })

  const harness = await openHarness(db)
  const verify = () => upkeep({ db, clock: harness.clock, random: systemRandom, log: silentLog }, harness.clock.now())
  await harness.signUpAndIn('metrics@example.com')
  await harness.openBrowser().send('POST', '/v1/auth/password-reset', { body: { email: 'metrics@example.com' } })
  expect(await read()).toMatchObject({ svccloud_email_outbox_pending: 1, svccloud_audit_broken_accounts: 0 })
  expect((await read())['svccloud_audit_unverified_entries']).toBeGreaterThan(1)
  harness.clock.move(1)
  await verify()
  await harness.readMails()
  expect(await read()).toEqual({
    svccloud_email_outbox_pending: 0,
    svccloud_audit_unverified_entries: 0,
    svccloud_audit_broken_accounts: 0,
  })

  await db
    .updateTable('audit_head')
    .set({ entry_hash: '0'.repeat(64) })
    .execute()
  harness.clock.move(1)
  await verify()
  expect((await read())['svccloud_audit_broken_accounts']).toBe(1)
})

test('the metrics are served while the database is away', async () => {
  const registry = openRegistry({ isProcessWide: false })
  openIdentityMetrics(database.db.withSchema('nowhere'), registry)
  expect(await registry.metrics()).toMatch(/^svccloud_email_outbox_pending Nan$/m)
})
