/** Managed databases of accounts: their names, the networks that they hold, sealed passwords and certificates. Locks
 *  are taken in one order: the quota of the account, then the network. */
import type { Selectable, Transaction } from 'kysely'
import { badField } from '../../domain/problem.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import { lockNetwork } from '../network/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { requireFreeName } from '../kit/free-name.ts'

export interface DatabaseId {
  readonly accountId: string
  readonly databaseId: string
}

export interface DatabaseDemand extends DatabaseId {
  readonly zone: string
  readonly name: string
  readonly networkId: string
  /** The owner's password, for when the database is not claimed yet. */
  readonly sealedPassword: string
}

export interface SealedServerCertificate {
  readonly certificate: string
  readonly sealedKey: string
  /** The address in the certificate. */
  readonly host: string
  readonly expiresAt: Date
}

export interface DatabaseClaim {
  readonly zone: string
  readonly name: string
  readonly networkId: string
  readonly sealedPassword: string
  readonly passwordGeneration: number
  readonly certificate: SealedServerCertificate | undefined
  /** Increases with every change of what its machine must run. */
  readonly generation: number
}

const holdingOf = ({ accountId, databaseId }: DatabaseId) => ({ accountId, holder: `database/${databaseId}` as const })

/** Does nothing when it is claimed already. Throws 404 for an unknown network, 400 for one of another zone, and the
 *  Problems `quota_exceeded` (422) and `name_taken` (409). */
export async function claimDatabase(
  tx: Transaction<Tables>,
  demand: DatabaseDemand,
  field = 'network_id',
): Promise<void> {
  const { accountId, databaseId: id, zone, name, networkId, sealedPassword } = demand
  if ((await findDatabase(tx, demand)) !== undefined) return
  await takeQuotas(tx, { ...holdingOf(demand), amounts: { databases: 1 } })
  const network = await lockNetwork(tx, { accountId, networkId })
  if (network.zone !== zone) throw badField(field, `is in zone ${network.zone}, not in ${zone}`)
  await requireFreeName(tx, 'database', { account_id: demand.accountId, id: demand.databaseId, name })
  await tx
    .insertInto('database')
    .values({ account_id: accountId, id, zone, name, network_id: networkId, sealed_password: sealedPassword })
    .onConflict((clash) => clash.columns(['account_id', 'id']).doNothing())
    .execute()
}

/** Throws the Problem `name_taken` (409). Does nothing when it has that name, or does not exist. */
export async function renameDatabase(tx: Transaction<Tables>, id: DatabaseId, name: string): Promise<void> {
  await selectWhere(tx, 'account_quota', { account_id: id.accountId, name: 'databases' })
    .select('name')
    .forUpdate()
    .execute()
  const known = await findDatabase(tx, id)
  if (known === undefined || known.name === name) return
  await requireFreeName(tx, 'database', { account_id: id.accountId, id: id.databaseId, name })
  await updateWhere(tx, 'database', { account_id: id.accountId, id: id.databaseId }).set({ name }).execute()
}

/** Undefined when nothing is claimed. */
export async function findDatabase(
  db: Queries,
  { accountId, databaseId }: DatabaseId,
): Promise<DatabaseClaim | undefined> {
  const row = await selectWhere(db, 'database', { account_id: accountId, id: databaseId })
    .selectAll()
    .executeTakeFirst()
  return row && toClaim(row)
}

function toClaim(row: Selectable<Tables['database']>): DatabaseClaim {
  const { certificate, sealed_key: sealedKey, certificate_host: host, certificate_expires_at: expiresAt } = row
  return {
    zone: row.zone,
    name: row.name,
    networkId: row.network_id,
    sealedPassword: row.sealed_password,
    passwordGeneration: row.password_generation,
    certificate:
      certificate === null || sealedKey === null || host === null || expiresAt === null
        ? undefined
        : { certificate, sealedKey, host, expiresAt },
    generation: row.generation,
  }
}

/** Returns the number of the new password. Another one of the same number is not replaced: of two simultaneous
 *  rotations, the second finds the first's. Undefined when the database does not exist, or has another number. */
export async function replacePassword(
  tx: Transaction<Tables>,
  { accountId, databaseId }: DatabaseId,
  { sealedPassword, before }: { readonly sealedPassword: string; readonly before: number },
): Promise<number | undefined> {
  const row = await updateWhere(tx, 'database', { account_id: accountId, id: databaseId, password_generation: before })
    .set((columns) => ({
      sealed_password: sealedPassword,
      password_generation: before + 1,
      generation: columns('generation', '+', 1),
    }))
    .returning('password_generation')
    .executeTakeFirst()
  return row?.password_generation
}

/** From now on its machine uses that certificate. Does nothing when the database is deleted. */
export async function keepServerCertificate(
  db: Queries,
  { accountId, databaseId }: DatabaseId,
  { certificate, sealedKey, host, expiresAt }: SealedServerCertificate,
): Promise<void> {
  await updateWhere(db, 'database', { account_id: accountId, id: databaseId })
    .set((columns) => ({
      certificate,
      sealed_key: sealedKey,
      certificate_host: host,
      certificate_expires_at: expiresAt,
      generation: columns('generation', '+', 1),
    }))
    .execute()
}

/** Idempotent. */
export async function releaseDatabase(tx: Transaction<Tables>, id: DatabaseId): Promise<void> {
  await releaseQuotas(tx, holdingOf(id))
  await deleteWhere(tx, 'database', { account_id: id.accountId, id: id.databaseId }).execute()
}
