/** What the platform itself stores in object storage: a tenant for each purpose and owner, with a key that grants
 *  access to nothing else. A row keeps its backend when its zone gets another store. */
import { sql } from 'kysely'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

export interface InternalTenantId {
  readonly purpose: Tables['internal_tenant']['purpose']
  readonly owner: string
  readonly zone: string
}

export interface InternalTenantRow extends InternalTenantId {
  readonly backend: Tables['internal_tenant']['backend']
  readonly accessKeyId: string
  /** For `internalTenantOwner`. */
  readonly sealedSecret: string
  readonly bucketPrefix: string
  readonly createdAt: Date
  /** When the store first had it. */
  readonly toldAt: Date | null
}

/** The owner that its secret is sealed for. */
export const internalTenantOwner = ({ purpose, owner, zone }: InternalTenantId): string =>
  `internal_tenant/${purpose}/${owner}/${zone}`
/** Its name and bucket in the store. */
export const internalTenantOf = ({ bucketPrefix }: Pick<InternalTenantRow, 'bucketPrefix'>): string =>
  `internal.${bucketPrefix}`
export const internalBucketOf = ({
  purpose,
  bucketPrefix,
}: Pick<InternalTenantRow, 'purpose' | 'bucketPrefix'>): string => `${bucketPrefix}${purpose}`

/** Undefined when there is none. */
export async function findInternalTenant(
  db: Queries,
  { purpose, owner, zone }: InternalTenantId,
): Promise<InternalTenantRow | undefined> {
  const row = await selectWhere(db, 'internal_tenant', { purpose, owner, zone }).selectAll().executeTakeFirst()
  return row && camelRow(row)
}

/** The tenant of the checkpoints of the audit log; undefined when there is none. */
export async function findAuditTenant(db: Queries): Promise<InternalTenantRow | undefined> {
  const row = await selectWhere(db, 'internal_tenant', { purpose: 'audit' })
    .selectAll()
    .orderBy('created_at')
    .orderBy('zone')
    .limit(1)
    .executeTakeFirst()
  return row && camelRow(row)
}

/** The existing tenant, or else the given one, which is then stored. */
export async function keepInternalTenant(
  db: Queries,
  tenant: Omit<InternalTenantRow, 'toldAt'>,
): Promise<InternalTenantRow> {
  await db
    .insertInto('internal_tenant')
    .values({
      purpose: tenant.purpose,
      owner: tenant.owner,
      zone: tenant.zone,
      backend: tenant.backend,
      access_key_id: tenant.accessKeyId,
      sealed_secret: tenant.sealedSecret,
      bucket_prefix: tenant.bucketPrefix,
      created_at: tenant.createdAt,
    })
    .onConflict((clash) => clash.columns(['purpose', 'owner', 'zone']).doNothing())
    .execute()
  const row = await findInternalTenant(db, tenant)
  if (row === undefined) throw new Error('the tenant has gone meanwhile')
  return row
}

/** Zones whose store has the owner's tenant for the purpose. */
export async function listToldZones(
  db: Queries,
  { purpose, owner }: Omit<InternalTenantId, 'zone'>,
): Promise<readonly string[]> {
  const rows = await selectWhere(db, 'internal_tenant', { purpose, owner })
    .select('zone')
    .where('told_at', 'is not', null)
    .execute()
  return rows.map(({ zone }) => zone)
}

/** Records that the store has it from now on. */
export async function recordToldTenant(
  db: Queries,
  { purpose, owner, zone }: InternalTenantId,
  toldAt: Date,
): Promise<void> {
  await updateWhere(db, 'internal_tenant', { purpose, owner, zone })
    .set({ told_at: toldAt })
    .where('told_at', 'is', null)
    .execute()
}

/** Tenants of accounts and of control planes that are deleted. */
export async function listAbandonedTenants(db: Queries): Promise<readonly InternalTenantRow[]> {
  const rows = await db
    .selectFrom('internal_tenant')
    .selectAll()
    .where(
      sql<boolean>`(purpose = 'backups' and not exists (select from account where account.id::text = owner))
        or (purpose = 'clusters' and not exists (select from kubernetes_cluster where control_plane_id::text = owner))`,
    )
    .execute()
  return rows.map(camelRow)
}

/** Does nothing when it is deleted. */
export async function removeInternalTenant(db: Queries, { purpose, owner, zone }: InternalTenantId): Promise<void> {
  await deleteWhere(db, 'internal_tenant', { purpose, owner, zone }).execute()
}
