/** Whatever is written is removed some day, or is listed here with the reason why it stays. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
/** Nothing deletes from them. */
const STAYS: Readonly<Record<string, string>> = {
  account: 'invoices and logs name it',
  app_user: 'history names people by it',
  api_token: 'the log names it; a revoked one is no longer counted as one of the person',
  credit: 'the ledger',
  audit_head: 'one for each account',
  account_quota: 'a few for each account',
  database_authority: 'one for the platform',
  kubernetes_issuer: 'one for the platform',
  sealing_key: 'one for each key that was ever used',
  look: 'one for the platform',
  operation_history: 'the history of the account',
  backup_key: 'one for each account',
  network_transfer: 'daily totals are kept (docs/billing.md)',
  usage_day: 'daily totals are kept (docs/billing.md)',
  billed_resource: 'the ledger',
  billed_life: 'the ledger',
  metering: 'one for the platform',
  invoice: 'the ledger',
  invoice_line: 'the ledger',
  credit_application: 'the ledger',
  invoice_run: 'one for each month',
  payment_customer: 'one for each account',
  payment_comparison: 'one for the platform',
  private_cloud_request: 'what an account has requested, and what was decided',
  quota_request: 'what an account has requested, and what was decided; twenty a day at most',
  user_preference: 'one for each person',
  deployment_secret: 'one for each name',
  coupon: 'credits name it',
  invitation: 'the log names it; each needs a place among the members',
  organisation: 'one for each customer who has several accounts',
  staff_user: 'the log names it',
  support_consent: 'what a customer has allowed, and when',
  support_session: 'what staff have done for a customer, and when',
}

test('every table is deleted from, or has a reason to stay', async () => {
  const declared = await Promise.all(
    ['tables', 'identity-tables'].map((file) => readFile(join(ROOT, `db/${file}.ts`), 'utf8')),
  )
  // the columns that several share are before the tables
  const tables = declared.flatMap((text) => [
    ...text.slice(text.search(/^export interface \w*Tables /m)).matchAll(/^ {2}([a-z_]+): /gm),
  ])
  const sources: string[] = []
  for (const folder of ['db', 'controllers', 'apiserver'])
    for (const file of await readdir(join(ROOT, folder), { recursive: true }))
      if (file.endsWith('.ts') && !file.includes('migrations/'))
        sources.push(await readFile(join(ROOT, folder, file), 'utf8'))
  const text = sources.join('\n')
  const isDeleted = (name: string) =>
    new RegExp(`deleteFrom\\('${name}'|deleteWhere\\(\\w+, '${name}'|delete from "?${name}\\b`).test(text)
  const growing = tables.flatMap(([, name = '']) => (isDeleted(name) ? [] : [name]))
  expect(growing.toSorted()).toEqual(Object.keys(STAYS).toSorted())
})
