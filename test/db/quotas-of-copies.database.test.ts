/** The GiB of snapshots, backups and custom images count against quotas, also of what was there before they did. */
import { type Kysely, sql, type Transaction } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { listQuotas } from '../../db/account/index.ts'
import { claimBackup, releaseBackup } from '../../db/backup/index.ts'
import { claimCustomImage, findCustomImageClaim, recordCustomImageSize } from '../../db/custom-image/index.ts'
import { up } from '../../db/migrations/0047-gibibytes-of-copies.ts'
import { claimSnapshot } from '../../db/snapshot/index.ts'
import type { Tables } from '../../db/tables.ts'
import { createAccount } from '../accounts.ts'
import { useDatabase } from '../database.ts'

const database = useDatabase()
let accountId: string
beforeEach(async () => {
  accountId = await createAccount(database.db)
})
const run = <T>(work: (tx: Transaction<Tables>) => Promise<T>) => database.db.transaction().execute(work)
const used = async (name: string) =>
  (await listQuotas(database.db, accountId)).find((quota) => quota.name === name)?.used ?? 0
const setLimit = (name: string, limit: number) =>
  database.db
    .updateTable('account_quota')
    .set({ limit })
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .execute()
const NOW = new Date('2026-11-29T00:00:00Z')

test('a backup takes the GiB of its disk until it is deleted, and is refused beyond the limit', async () => {
  await setLimit('backup_gibibytes', 100)
  const claim = { accountId, backupId: 'b', sizeGibibytes: 60 }
  await run((tx) => claimBackup(tx, claim))
  await run((tx) => claimBackup(tx, claim))
  expect(await used('backup_gibibytes')).toBe(60)
  await expect(run((tx) => claimBackup(tx, { ...claim, backupId: 'c' }))).rejects.toMatchObject({
    members: { quota: { name: 'backup_gibibytes', requested: 60 } },
  })
  await run((tx) => releaseBackup(tx, claim))
  expect([await used('backup_gibibytes'), await used('backups')]).toEqual([0, 0])
})

test('a snapshot takes the GiB of its storage', async () => {
  await database.db
    .insertInto('storage_claim')
    .values({
      account_id: accountId,
      storage_id: 's',
      zone: 'z',
      size_gibibytes: 10,
      phase: 'detached',
      node: 'n1',
      claimed_at: NOW,
    })
    .execute()
  const held = { storageId: 's', bootServerId: undefined, isShared: false }
  await run((tx) => claimSnapshot(tx, { accountId, snapshotId: 'p', sizeGibibytes: 10, ...held }))
  expect(await used('snapshot_gibibytes')).toBe(10)
})

test('a custom image takes more when it turns out to be larger, and what it has once it is made', async () => {
  await setLimit('custom_image_gibibytes', 100)
  const image = { accountId, imageId: 'i' }
  const resize = (sizeGibibytes: number) => run((tx) => claimCustomImage(tx, { ...image, sizeGibibytes }))
  await resize(64)
  await resize(90)
  expect(await used('custom_image_gibibytes')).toBe(90)
  await expect(resize(101)).rejects.toMatchObject({ members: { quota: { name: 'custom_image_gibibytes' } } })
  const record = (sizeGibibytes: number) => run((tx) => recordCustomImageSize(tx, { ...image, sizeGibibytes }))
  await record(300) // it is there
  expect([await used('custom_image_gibibytes'), await used('custom_images')]).toEqual([300, 1])
  expect(await findCustomImageClaim(database.db, image)).toEqual({ sizeGibibytes: 300 })
  await record(0)
  expect([await used('custom_image_gibibytes'), await used('custom_images')]).toEqual([0, 1])
  await run((tx) => recordCustomImageSize(tx, { accountId, imageId: 'released', sizeGibibytes: 5 }))
  expect(await used('custom_image_gibibytes')).toBe(0)
})

test('what existed before counts as it is billed, for any limit', async () => {
  const { db } = database
  await run((tx) => claimBackup(tx, { accountId, backupId: 'old', sizeGibibytes: 0 }))
  await sql`delete from account_quota where account_id = ${accountId} and name = 'backup_gibibytes'`.execute(db)
  for (const [id, until] of [
    ['old', null],
    ['released', NOW],
  ] as const)
    await sql`
      with resource as (
        insert into billed_resource (account_id, resource_type, uid, resource_id, name)
        values (${accountId}, 'backup', ${`uid-${id}`}, ${id}, ${id}) returning id
      )
      insert into billed_life (resource, account_id, plan, quantity, since, until, metered_until)
      select id, ${accountId}::uuid, '', 70000, ${NOW}::timestamptz, ${until}::timestamptz, ${NOW}::timestamptz
      from resource`.execute(db)
  await up(db as unknown as Kysely<unknown>) // migrations know no table
  expect(await listQuotas(db, accountId)).toContainEqual({ name: 'backup_gibibytes', limit: 51_200, used: 70_000 })
  await run((tx) => releaseBackup(tx, { accountId, backupId: 'old' }))
  expect(await used('backup_gibibytes')).toBe(0)
})
