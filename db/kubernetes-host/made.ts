/** Hosts of control planes that the platform creates itself: their secrets, which only sealing keys open, and their
 *  addresses once they answer. */
import type { Transaction } from 'kysely'
import { PLATFORM_ACCOUNT_ID } from '../../domain/account/platform-account.ts'
import type { Certificate } from '../../kit/sys/certificate.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import { openAccount, openQuotas } from '../account/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

/** The secrets of a host process. */
export interface HostSecrets {
  /** The secret that the platform sends to it. */
  readonly token: string
  /** The TLS certificate, signed by its authority, and its subject. */
  readonly certificate: Certificate
  readonly serverName: string
}

export interface MadeHostRow {
  readonly region: string
  readonly id: string
  /** PEM. */
  readonly authority: string
  readonly sealedSecrets: string
  /** Undefined until it answers there. */
  readonly url: string | undefined
}

const COLUMNS = ['region', 'id', 'authority', 'sealed_secrets', 'url'] as const
type HostColumns = Pick<Tables['kubernetes_host'], 'region' | 'id' | 'authority' | 'sealed_secrets' | 'url'>

const toRow = ({ region, id, authority, sealed_secrets: sealedSecrets, url }: HostColumns): readonly MadeHostRow[] =>
  authority === null || sealedSecrets === null ? [] : [{ region, id, authority, sealedSecrets, url: url ?? undefined }]

const ownerOf = (id: string): string => `kubernetes_host/${id}`

export const sealHostSecrets = (sealing: Sealing, id: string, secrets: HostSecrets): string =>
  sealing.seal(JSON.stringify(secrets), ownerOf(id))

/** Throws when no key unseals them. */
export const openHostSecrets = (sealing: Sealing, { id, sealedSecrets }: MadeHostRow): HostSecrets =>
  // only sealHostSecrets seals for this owner
  JSON.parse(sealing.open(sealedSecrets, ownerOf(id))) as HostSecrets

/** Undefined for one that has no secrets yet, and for a region without a row. */
export async function findMadeHost(db: Queries, id: string): Promise<MadeHostRow | undefined> {
  const row = await selectWhere(db, 'kubernetes_host', { id }).select(COLUMNS).executeTakeFirst()
  return row && toRow(row)[0]
}

/** How processes of the platform connect to one that answers. */
export interface RegisteredHost extends Pick<HostSecrets, 'token' | 'serverName'>, Pick<MadeHostRow, 'authority'> {
  readonly region: string
  readonly url: string
}

/** Hosts that answer; none without sealing keys. */
export async function listRegisteredHosts(db: Queries, sealing: Sealing): Promise<readonly RegisteredHost[]> {
  if (!sealing.isAvailable) return []
  const rows = await db
    .selectFrom('kubernetes_host')
    .select(COLUMNS)
    .where('registered_at', 'is not', null)
    .orderBy('region')
    .execute()
  return rows.flatMap(toRow).flatMap((row) => {
    const { region, url, authority } = row
    const { token, serverName } = openHostSecrets(sealing, row)
    return url === undefined ? [] : [{ region, url, token, authority, serverName }]
  })
}

/** Existing secrets stay. */
export async function keepHostSecrets(
  db: Queries,
  id: string,
  { authority, sealedSecrets }: Pick<MadeHostRow, 'authority' | 'sealedSecrets'>,
): Promise<void> {
  await updateWhere(db, 'kubernetes_host', { id })
    .set({ authority, sealed_secrets: sealedSecrets })
    .where('sealed_secrets', 'is', null)
    .execute()
}

/** From now on the platform connects to it there. */
export async function registerHost(db: Queries, id: string, url: string, now: Date): Promise<void> {
  await updateWhere(db, 'kubernetes_host', { id })
    .set(({ fn, val, ref }) => ({ url, registered_at: fn.coalesce(ref('registered_at'), val(now)) }))
    .where('sealed_secrets', 'is not', null)
    .execute()
}

/** Nobody connects to it any longer. Idempotent. */
export async function forgetHost(db: Queries, id: string): Promise<void> {
  await deleteWhere(db, 'kubernetes_host', { id }).where('sealed_secrets', 'is not', null).execute()
}

/** Higher than any real usage. */
const PLATFORM_LIMIT = 2 ** 40

/** The account of host clusters, which no quota limits. Idempotent. */
export async function ensurePlatformAccount(tx: Transaction<Tables>, now: Date): Promise<void> {
  const id = PLATFORM_ACCOUNT_ID
  const found = await selectWhere(tx, 'account', { id }).select('id').executeTakeFirst()
  if (found === undefined) await openAccount(tx, { id, name: 'svccloud', now })
  else await openQuotas(tx, id)
  await updateWhere(tx, 'account_quota', { account_id: id }).set({ limit: PLATFORM_LIMIT }).execute()
}
