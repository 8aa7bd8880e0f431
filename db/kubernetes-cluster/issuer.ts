/** The issuer of the tokens for access to Kubernetes clusters: one key of the deployment, sealed. */
import { createHash, generateKeyPairSync } from 'node:crypto'
import { isDryRun } from '../../kit/sys/dry-run.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import type { Queries } from '../kit/open.ts'

/** A JWK. */
export type PublicKey = Readonly<Record<string, string>>

export interface Issuer {
  readonly publicKey: PublicKey
  /** PEM. */
  readonly privateKey: string
}

const OWNER = 'kubernetes_issuer'

/** The first caller creates it; a dry run gets one that nobody keeps. */
export async function ensureIssuer(db: Queries, sealing: Sealing): Promise<Issuer> {
  const known = await readIssuer(db, sealing)
  if (known !== undefined) return known
  const keyPair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = keyPair.publicKey.export({ format: 'jwk' })
  const kid = createHash('sha256').update(`${x}.${y}`).digest('base64url')
  const publicKey = { kty: 'EC', crv: 'P-256', x, y, kid, alg: 'ES256', use: 'sig' }
  const privateKey = keyPair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  if (isDryRun()) return { publicKey, privateKey }
  await db
    .insertInto('kubernetes_issuer')
    .values({ public_key: JSON.stringify(publicKey), sealed_key: sealing.seal(privateKey, OWNER) })
    .onConflict((clash) => clash.doNothing())
    .execute()
  const issuer = await readIssuer(db, sealing)
  if (issuer === undefined) throw new Error('the key of the issuer was not kept')
  return issuer
}

async function readIssuer(db: Queries, sealing: Sealing): Promise<Issuer | undefined> {
  const row = await db.selectFrom('kubernetes_issuer').selectAll().executeTakeFirst()
  return row && { publicKey: row.public_key, privateKey: sealing.open(row.sealed_key, OWNER) }
}
