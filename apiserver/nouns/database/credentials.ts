/** The credentials of the owner of a database. */
import { connectionUri, DATABASE_PORT } from '../../../domain/database/rules.ts'
import { notFound, unavailable } from '../../../domain/problem.ts'
import { findAuthority, findDatabase, openPassword } from '../../../db/database/index.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import type { DatabaseCredentials } from '../../../resources/database/index.ts'
import type { Parts } from '../../kit/parts.ts'
import type { DatabaseObject, Databases } from './objects.ts'

export type DatabaseParts = Parts & { readonly databases: Databases; readonly sealing: Sealing }

/** Throws 503 where no sealing key is configured. */
export function requireDatabaseSealing({ sealing }: Pick<DatabaseParts, 'sealing'>): void {
  if (!sealing.isAvailable)
    throw unavailable('not_configured', 'Databases need sealing keys, which this deployment does not have.')
}

/** Throws 404 when nothing is claimed for it, and 503 where nothing can be unsealed. */
export async function credentialsOf(
  parts: DatabaseParts,
  accountId: string,
  { metadata: { name: databaseId }, spec, status }: DatabaseObject,
): Promise<DatabaseCredentials> {
  requireDatabaseSealing(parts)
  const id = { accountId, databaseId }
  const claim = await findDatabase(parts.db, id)
  const authority = await findAuthority(parts.db)
  if (claim === undefined || authority === undefined) throw notFound('database')
  const { databaseName: database, ownerName: user } = spec
  const password = openPassword(parts, id, claim.sealedPassword)
  const host = status?.host
  return {
    username: user,
    password,
    database_name: database,
    host: host ?? null,
    port: DATABASE_PORT,
    connection_uri: host === undefined ? null : connectionUri({ host, user, database, password }),
    ca_certificate: authority,
  }
}
