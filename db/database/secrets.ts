/** Secrets of managed databases: passwords of owners, and certificates that the platform's authority signs. Each is
 *  sealed for its own row. */
import { CERTIFICATE_DAYS, tlsServerName } from '../../domain/database/rules.ts'
import { type Certificate, DAY_MILLISECONDS, makeCertificate } from '../../kit/sys/certificate.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import { isDryRun } from '../../kit/sys/dry-run.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import type { Queries } from '../kit/open.ts'
import type { DatabaseId, SealedServerCertificate } from './claims.ts'

const PASSWORD_CHARACTERS = 32
const AUTHORITY_DAYS = 3_650
const AUTHORITY_OWNER = 'database_authority'

const passwordOwner = ({ accountId, databaseId }: DatabaseId): string => `database_password/${accountId}/${databaseId}`
const keyOwner = ({ accountId, databaseId }: DatabaseId): string => `database_key/${accountId}/${databaseId}`

export interface SecretParts {
  readonly sealing: Sealing
  readonly random: Random
}

export const newSealedPassword = ({ sealing, random }: SecretParts, id: DatabaseId): string =>
  sealing.seal(newBase62(random, PASSWORD_CHARACTERS), passwordOwner(id))

export const openPassword = ({ sealing }: Pick<SecretParts, 'sealing'>, id: DatabaseId, sealed: string): string =>
  sealing.open(sealed, passwordOwner(id))

export const openServerKey = ({ sealing }: Pick<SecretParts, 'sealing'>, id: DatabaseId, sealed: string): string =>
  sealing.open(sealed, keyOwner(id))

/** The certificate of the authority; undefined before the first database. */
export async function findAuthority(db: Queries): Promise<string | undefined> {
  return (await db.selectFrom('database_authority').select('certificate').executeTakeFirst())?.certificate
}

/** The first caller creates it; a dry run gets one that nobody keeps. */
export async function ensureAuthority(db: Queries, parts: SecretParts & { readonly now: Date }): Promise<Certificate> {
  const known = await readAuthority(db, parts)
  if (known !== undefined) return known
  const authority = await makeCertificate({
    commonName: 'svccloud databases',
    days: AUTHORITY_DAYS,
    isAuthority: true,
    now: parts.now,
    random: parts.random,
  })
  if (isDryRun()) return authority
  const row = { certificate: authority.certificate, sealed_key: parts.sealing.seal(authority.key, AUTHORITY_OWNER) }
  await db
    .insertInto('database_authority')
    .values(row)
    .onConflict((clash) => clash.doNothing())
    .execute()
  return (await readAuthority(db, parts)) ?? authority
}

async function readAuthority(db: Queries, { sealing }: SecretParts): Promise<Certificate | undefined> {
  const row = await db.selectFrom('database_authority').selectAll().executeTakeFirst()
  return row && { certificate: row.certificate, key: sealing.open(row.sealed_key, AUTHORITY_OWNER) }
}

/** For the database at that address. */
export async function newServerCertificate(
  db: Queries,
  parts: SecretParts & { readonly now: Date },
  { host, ...id }: DatabaseId & { readonly host: string },
): Promise<SealedServerCertificate> {
  const { now, random, sealing } = parts
  const authority = await ensureAuthority(db, parts)
  const hosts = [tlsServerName(id.databaseId), host]
  const { certificate, key } = await makeCertificate({
    commonName: 'svccloud database',
    days: CERTIFICATE_DAYS,
    hosts,
    authority,
    now,
    random,
  })
  const expiresAt = new Date(now.getTime() + CERTIFICATE_DAYS * DAY_MILLISECONDS)
  return { certificate, sealedKey: sealing.seal(key, keyOwner(id)), host, expiresAt }
}
