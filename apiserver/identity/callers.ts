/** Authenticates callers: turns a bearer token or a session cookie into a Customer. Results of the database are cached
 *  for half a second, so that a busy client costs no query per request and a revoked credential still stops within a
 *  second on every replica. */
import { BlockList, isIP, isIPv6 } from 'node:net'
import { forbidden, unauthenticated } from '../../domain/problem.ts'
import {
  CLUSTER_PERMISSIONS,
  ROLE_PERMISSIONS,
  SUPPORT_PERMISSIONS,
  tokenPermissions,
} from '../../domain/permissions.ts'
import type { Database } from '../../db/kit/open.ts'
import {
  findSession,
  findTokens,
  hashSecret,
  type LiveToken,
  markTokenUsed,
  minuteOf,
} from '../../db/identity/index.ts'
import { findClusterTokens, type LiveClusterToken } from '../../db/kubernetes-cluster/index.ts'
import { findSupportSession } from '../../db/staff/index.ts'
import type { Customer, RequestFacts } from '../../kit/http/call.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { tokenHolder } from '../../kit/sys/token-format.ts'
import { createKnownTokens } from './known-tokens.ts'

export const SESSION_COOKIE = 'svccloud_session'
export const CSRF_COOKIE = 'svccloud_csrf'
/** Prefix of the secrets of support sessions. */
export const SUPPORT_SECRET_PREFIX = 'support_'
const WITHOUT_SCHEME =
  'The Authorization header must be the word Bearer, a space and an API token: Authorization: Bearer svccloud_…'
const KEPT_MILLISECONDS = 500
const KEPT_MAXIMUM = 10_000
/** We never issue longer cookies. */
const SECRET_CHARACTERS_MAXIMUM = 128

export interface Callers {
  /** Undefined without credentials, or with a session cookie that is dead. Throws 401 for a bearer token that is not
   *  valid, and 403 for one used from an address that it does not allow. A bearer token takes precedence over
   *  cookies. */
  authenticate(request: RequestFacts): Promise<Customer | undefined>
  /** Clears the cache. Code that changes a session, a token, a role or a user calls this. */
  forget(): void
}

export interface CallerParts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly csrfTokenOf: (sessionId: string) => string
  readonly canSendMail: boolean
}

interface KnownToken {
  readonly customer: Customer
  readonly id: string
  /** Undefined: from anywhere. */
  readonly allowed: BlockList | undefined
  /** The minute in which its last use was written, in milliseconds. */
  usedAt: number
}

function openTokens(parts: CallerParts) {
  const { db, clock } = parts
  const keeping = { clock, keptMilliseconds: KEPT_MILLISECONDS, keptMaximum: KEPT_MAXIMUM }
  const tokens = createKnownTokens({
    ...keeping,
    read: async (hashes) =>
      (await findTokens(db, hashes, clock.now())).map(({ secretHash, token }) => ({
        secretHash,
        known: knownToken(parts, token),
      })),
  })
  const clusterTokens = createKnownTokens({
    ...keeping,
    read: async (hashes) =>
      (await findClusterTokens(db, hashes, clock.now())).map(({ secretHash, token }) => ({
        secretHash,
        known: clusterOf(token),
      })),
  })
  return { tokens, clusterTokens }
}

/** Results are cached for a moment, so that a busy customer does not cost a query for every request. */
export function createCallers(parts: CallerParts): Callers {
  const { db, clock, log } = parts
  const { tokens, clusterTokens } = openTokens(parts)
  const entries = new Map<string, { readonly until: number; readonly known: Promise<Customer | undefined> }>()

  function once(key: string, find: () => Promise<Customer | undefined>): Promise<Customer | undefined> {
    const now = clock.monotonicMilliseconds()
    const found = entries.get(key)
    if (found !== undefined && found.until > now) return found.known
    const known = find()
    known.catch(() => entries.delete(key))
    entries.delete(key)
    entries.set(key, { until: now + KEPT_MILLISECONDS, known }) // newest last
    if (entries.size > KEPT_MAXIMUM)
      for (const oldest of entries.keys()) {
        entries.delete(oldest)
        break
      }
    return known
  }

  function noteUse(token: KnownToken, sourceIp: string): void {
    const minute = minuteOf(clock.now())
    if (minute.getTime() <= token.usedAt) return
    token.usedAt = minute.getTime()
    markTokenUsed(db, token.id, minute, sourceIp).catch((error: unknown) =>
      log.info('last use of a token was not written', { error, token_id: token.id }),
    )
  }

  return {
    async authenticate(request) {
      const authorization = request.header('authorization')
      if (authorization !== undefined) {
        const token = /^bearer +(\S+)$/i.exec(authorization)?.[1]
        if (token === undefined && !/^bearer( |$)/i.test(authorization)) throw unauthenticated(WITHOUT_SCHEME)
        const holder = token === undefined ? undefined : tokenHolder(token)
        if (token === undefined || holder === undefined) throw unauthenticated('The API token is not valid.')
        if (holder === 'cluster') {
          const cluster = await clusterTokens.find(token)
          if (cluster === undefined) throw unauthenticated('The token of a cluster is invalid or expired.')
          return cluster
        }
        const known = await tokens.find(token)
        if (known === undefined) throw unauthenticated('The API token is invalid, revoked or expired.')
        noteUse(known, request.sourceIp)
        if (known.allowed !== undefined && !isWithin(known.allowed, request.sourceIp)) {
          throw forbidden('This API token may not be used from your address.', 'address_not_allowed')
        }
        return known.customer
      }
      const secret = request.cookie(SESSION_COOKIE)
      if (secret === undefined || secret === '' || secret.length > SECRET_CHARACTERS_MAXIMUM) return undefined
      const lookUp = secret.startsWith(SUPPORT_SECRET_PREFIX) ? lookUpSupportSession : lookUpSession
      return once(hashSecret(secret).toString('base64'), () => lookUp(parts, secret))
    },
    forget() {
      tokens.forget()
      clusterTokens.forget()
      entries.clear()
    },
  }
}

function knownToken({ canSendMail }: CallerParts, token: LiveToken): KnownToken {
  const { id, name, scope, accountId, userId, email, role } = token
  return {
    id,
    usedAt: token.lastUsedAt?.getTime() ?? 0,
    customer: {
      kind: 'token',
      accountId,
      userId,
      email,
      role,
      permissions: tokenPermissions(role, scope),
      token: { id, name, scope },
      actor: `token:${name}`,
      isEmailVerified: token.emailVerifiedAt !== null || !canSendMail,
    },
    allowed: token.allowedCidrs.length === 0 ? undefined : toBlockList(token.allowedCidrs),
  }
}

/** Its name identifies the cluster and the add-on; no person uses it. */
function clusterOf({ id, accountId, clusterId, program, scopes }: LiveClusterToken): Customer {
  const name = `kubernetes-cluster/${clusterId}/${program}`
  return {
    kind: 'token',
    accountId,
    userId: '',
    email: '',
    role: 'member',
    permissions: CLUSTER_PERMISSIONS,
    token: { id, name, scope: CLUSTER_PERMISSIONS },
    clusterScopes: scopes,
    actor: `token:${name}`,
    isEmailVerified: true, // of the person who created the cluster
  }
}

async function lookUpSession(
  { db, clock, csrfTokenOf, canSendMail }: CallerParts,
  secret: string,
): Promise<Customer | undefined> {
  const session = await findSession(db, secret, clock.now())
  if (session === undefined) return undefined
  const { id, accountId, userId, email, role, expiresAt } = session
  return {
    kind: 'session',
    accountId,
    userId,
    email,
    role,
    permissions: ROLE_PERMISSIONS[role],
    session: { id, csrfToken: csrfTokenOf(id), expiresAt },
    actor: `user:${userId}`,
    isEmailVerified: session.emailVerifiedAt !== null || !canSendMail,
  }
}

/** A support session acts as the owner, within the limits of its mode. */
async function lookUpSupportSession(
  { db, clock, csrfTokenOf, canSendMail }: CallerParts,
  secret: string,
): Promise<Customer | undefined> {
  const session = await findSupportSession(db, secret, clock.now())
  if (session === undefined) return undefined
  const { id, accountId, userId, mode, reason, expiresAt, staffId, staffEmail, staffName } = session
  return {
    kind: 'session',
    accountId,
    userId,
    email: session.ownerEmail,
    role: 'owner',
    permissions: SUPPORT_PERMISSIONS[mode],
    session: { id, csrfToken: csrfTokenOf(id), expiresAt },
    support: { staffId, staffEmail, staffName, reason, mode, expiresAt },
    actor: 'operator',
    isEmailVerified: session.ownerVerifiedAt !== null || !canSendMail,
  }
}

function toBlockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList()
  for (const cidr of cidrs) {
    const [address = '', prefix = ''] = cidr.split('/')
    list.addSubnet(address, Number(prefix), isIPv6(address) ? 'ipv6' : 'ipv4')
  }
  return list
}

const isWithin = (list: BlockList, address: string): boolean =>
  isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
