/** Tokens of service accounts: signed by this server, invalid once the account is deleted. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { newUuid } from '../../../kit/sys/random.ts'
import { asObject, asString, at, type Json, type JsonObject } from '../core/json.ts'
import type { Engine } from '../core/engine.ts'
import type { KubeObject, User } from '../core/object.ts'

const ISSUER = 'https://kubernetes.default.svc.cluster.local'
const HEADER = { alg: 'HS256', typ: 'JWT' }
const CREDENTIAL = 'authentication.kubernetes.io/credential-id'

const encode = (value: JsonObject): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const signatureOf = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()

export interface IssuedToken {
  readonly token: string
  readonly expiresAt: Date
}

export function issueAccountToken(
  engine: Engine,
  account: KubeObject,
  audiences: readonly string[],
  seconds: number,
): IssuedToken {
  const { namespace = '', name, uid } = account.metadata
  const now = Math.floor(engine.clock.now().getTime() / 1000)
  const claims = {
    aud: audiences.length === 0 ? [ISSUER] : audiences,
    exp: now + seconds,
    iat: now,
    iss: ISSUER,
    jti: newUuid(engine.random),
    'kubernetes.io': { namespace, serviceaccount: { name, uid } },
    nbf: now,
    sub: `system:serviceaccount:${namespace}:${name}`,
  }
  const signed = `${encode(HEADER)}.${encode(claims)}`
  return {
    token: `${signed}.${signatureOf(engine.tokenKey, signed).toString('base64url')}`,
    expiresAt: new Date((now + seconds) * 1000),
  }
}

/** The service account of a token that this server signed, that is valid for this server and not expired; undefined
 *  otherwise. */
export function accountOfToken(engine: Engine, token: string): User | undefined {
  const [header = '', payload = '', signature = '', ...rest] = token.split('.')
  const actual = Buffer.from(signature, 'base64url')
  const expected = signatureOf(engine.tokenKey, `${header}.${payload}`)
  if (rest.length > 0 || actual.length !== expected.length || !timingSafeEqual(actual, expected)) return undefined
  // the signature proves that we wrote it
  const claims = asObject(JSON.parse(Buffer.from(payload, 'base64url').toString()) as Json)
  const isFor = Array.isArray(claims.aud) && claims.aud.includes(ISSUER)
  if (!isFor || Number(claims.exp) * 1000 <= engine.clock.now().getTime()) return undefined
  const namespace = asString(at(claims, 'kubernetes.io', 'namespace'))
  const name = asString(at(claims, 'kubernetes.io', 'serviceaccount', 'name'))
  const uid = asString(at(claims, 'kubernetes.io', 'serviceaccount', 'uid'))
  if (engine.store.table('/serviceaccounts').get(`${namespace}/${name}`)?.metadata.uid !== uid) return undefined
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    extra: { [CREDENTIAL]: [`JTI=${asString(claims.jti)}`] },
  }
}
