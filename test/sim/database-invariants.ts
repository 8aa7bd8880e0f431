/** What must hold of databases once everything is quiet, and that nothing is left of deleted ones. */
import { findDatabase, openPassword } from '../../db/database/index.ts'
import type { Database as Db } from '../../db/kit/open.ts'
import { scramVerifier } from '../../domain/database/scram.ts'
import { createSealing } from '../../kit/sys/sealing.ts'
import { Database } from '../../resources/database/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { checkRecoverable, clustersOf, type DatabaseObject } from './databases.ts'
import { SEALING_KEYS } from './processes.ts'
import { type Account, ask } from './requests.ts'
import type { World } from './world.ts'

/** Archives are swept every ten minutes. */
const SWEPT_MILLISECONDS = 660_000

/** Nothing of them is under way. */
export async function areDatabasesQuiet({ admin, guests }: World): Promise<boolean> {
  if (guests?.databases === undefined) return true
  return (await admin.list(Database)).items.every(
    (database) =>
      database.metadata.deletionTimestamp === undefined &&
      activeOperationOf(database) === undefined &&
      (database.status?.isMade !== true || database.status.isHealthy === true),
  )
}

/** Those that are made run with the password that is answered, and what is claimed is of those that exist. */
export async function checkDatabases(world: World, db: Db): Promise<string[]> {
  const { guests, databases: ledger } = world
  if (guests?.databases === undefined || ledger === undefined) return []
  const objects = (await world.admin.list(Database)).items
  const violations = [...ledger.violations, ...(await checkRecoverable(world, db, ledger))]
  for (const object of objects) violations.push(...(await checkOne(world, db, object)))
  const isThere = (accountId: string, id: string) =>
    objects.some(({ metadata }) => metadata.namespace === accountNamespace(accountId) && metadata.name === id)
  for (const { account_id, id } of await db.selectFrom('database').select(['account_id', 'id']).execute())
    if (!isThere(account_id, id)) violations.push(`database ${id} is claimed, and does not exist`)
  for (const row of await db.selectFrom('database_archive').selectAll().execute()) {
    if (row.origin === null && !isThere(row.account_id, row.id))
      violations.push(`the archive of database ${row.id} is nobody's`)
    const keptLate = world.clock.now().getTime() - (row.kept_until?.getTime() ?? Number.POSITIVE_INFINITY)
    if (row.origin !== null && keptLate > SWEPT_MILLISECONDS)
      violations.push(`the archive of database ${row.id} is kept for longer than was said`)
  }
  for (const { account_id, holder } of await db.selectFrom('quota_holding').selectAll().execute()) {
    const [type, id = ''] = holder.split('/')
    if (type === 'database' && !isThere(account_id, id)) violations.push(`a quota is taken for ${holder}`)
  }
  return violations
}

async function checkOne(world: World, db: Db, database: DatabaseObject): Promise<string[]> {
  const { metadata, status } = database
  const { name: databaseId, uid = '', namespace = '' } = metadata
  if (status?.isMade !== true) return []
  const accountId = namespace.replace('acct-', '')
  const claim = await findDatabase(db, { accountId, databaseId })
  const [cluster, ...others] = clustersOf(world, database)
  const violations: string[] = []
  if (status.isLost === true) violations.push(`database ${databaseId} has lost its data`)
  if (others.length > 0) violations.push(`database ${databaseId} has begun anew`)
  if (claim === undefined || cluster === undefined) return [...violations, `database ${databaseId} runs nowhere`]
  const sealing = createSealing(SEALING_KEYS, world.scheduler.random)
  const password = openPassword({ sealing }, { accountId, databaseId }, claim.sealedPassword)
  if (scramVerifier(password, `${uid}/${claim.passwordGeneration}`) !== cluster.verifier)
    violations.push(`database ${databaseId} refuses its password ${claim.passwordGeneration}`)
  if (status.backups?.latestAt === undefined) violations.push(`database ${databaseId} is not archived`)
  const boots = (await world.admin.list(Storage, { namespace })).items.filter(
    ({ spec }) => spec.isBoot && spec.serverId !== undefined,
  )
  const twice = boots.filter(({ spec }) => boots.filter((other) => other.spec.serverId === spec.serverId).length > 1)
  if (twice.length > 0) violations.push(`machine ${twice[0]?.spec.serverId} has ${twice.length} root disks`)
  return violations
}

/** Asks for the end of all of them; answers how many there were. What was kept of deleted ones is over. */
export async function deleteDatabases(world: World, accounts: readonly Account[]): Promise<number> {
  const { admin, guests, db, scheduler } = world
  if (guests?.databases === undefined) return 0
  const { items } = await admin.list(Database)
  for (const account of accounts)
    for (const { metadata } of items)
      if (metadata.namespace === accountNamespace(account.id))
        await ask(world, account, 'DELETE', `/v1/databases/${metadata.name}?keep_backups_days=0`)
  if (items.length > 0) return items.length
  await db
    .updateTable('database_archive')
    .set({ kept_until: scheduler.now() })
    .where('origin', 'is not', null)
    .execute()
  await scheduler.pause(SWEPT_MILLISECONDS + 1)
  return 0
}
