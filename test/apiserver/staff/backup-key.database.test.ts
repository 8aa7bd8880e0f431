/** The key of an account's backups, as operators take it while the platform still runs. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { STAFF_CHAIN } from '../../../db/audit/index.ts'
import { backupKeyOwner, keepBackupKey } from '../../../db/backup/index.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { createSealing, parseSealingKeys } from '../../../kit/sys/sealing.ts'
import { useDatabase } from '../../database.ts'
import { type Cloud, openCloud } from '../cloud.ts'

const SEALING_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`
const KEY = 'ab'.repeat(32)
const ROOT = join(import.meta.dirname, '../../..')
const database = useDatabase()
let cloud: Cloud
beforeAll(async () => {
  cloud = await openCloud(database.db)
})
afterAll(() => cloud.close())

const staff = (...words: string[]) =>
  promisify(execFile)('node', ['apiserver/staff/main.ts', ...words], {
    cwd: ROOT,
    env: { ...process.env, DATABASE_URL: database.url, SVCCLOUD_SEALING_KEYS: SEALING_KEYS },
  })

test('is printed, once it is in the log of staff and in the chain of the account', async () => {
  const { accountId } = await cloud.signUp('kept@example.com')
  const sealing = createSealing(parseSealingKeys(SEALING_KEYS), systemRandom)
  const sealedKey = sealing.seal(KEY, backupKeyOwner(accountId))
  await keepBackupKey(database.db, { accountId, sealedKey, createdAt: new Date() })

  const { stdout } = await staff('export-backup-key', accountId, '--by', 'sam@example.com', '--reason', 'escrow')
  expect(stdout).toBe(`${KEY}\n`)

  const act = {
    action: 'backup.key_exported',
    actor_email: 'sam@example.com',
    actor_kind: 'operator',
    resource_type: 'account',
    resource_id: accountId,
    detail: { reason: 'escrow' },
  }
  const rows = await database.db
    .selectFrom('audit_entry')
    .select(['account_id', 'body'])
    .where('action', '=', act.action)
    .orderBy('account_id')
    .execute()
  const entries = rows.map(({ account_id, body }) => ({ account_id, body: JSON.parse(body) as unknown }))
  expect(entries).toHaveLength(2)
  expect(entries).toContainEqual({ account_id: accountId, body: expect.objectContaining(act) })
  const detail = { ...act.detail, account_id: accountId }
  expect(entries).toContainEqual({ account_id: STAFF_CHAIN, body: expect.objectContaining({ ...act, detail }) })
})

test('is not there before the first backup, and is given to nobody without a reason', async () => {
  const { accountId } = await cloud.signUp('new@example.com')
  const by = ['--by', 'sam@example.com']
  await expect(staff('export-backup-key', accountId, ...by, '--reason', 'x')).rejects.toThrow('has no key')
  await expect(staff('export-backup-key', 'no account', ...by, '--reason', 'x')).rejects.toThrow('has no key')
  for (const words of [[accountId], [accountId, ...by], [accountId, ...by, '--reason', ' ']])
    await expect(staff('export-backup-key', ...words)).rejects.toThrow('Usage:')
})
