/** API tokens: listing, creating, revoking. */
import { canonicalCidr } from '../../../domain/network/addresses.ts'
import { badField, nameTaken, notFound, quotaExceeded } from '../../../domain/problem.ts'
import { ROLE_PERMISSIONS, type TokenScope } from '../../../domain/permissions.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { lockUser } from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import {
  type TokenRow,
  countLiveTokens,
  createToken,
  findTokenNamed,
  listTokens,
  readToken,
  revokeToken,
} from '../../../db/identity/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import { newBase62, newUuid } from '../../../kit/sys/random.ts'
import {
  ApiToken,
  createApiToken,
  listApiTokens,
  revokeApiToken,
  revokeOwnToken,
} from '../../../resources/api-token/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { TOKEN_SECRET_CHARACTERS, formatToken } from '../../../kit/sys/token-format.ts'
import { pageOfRows } from '../../kit/list/page.ts'
import { viewOf } from '../../../resources/kit/view.ts'
import { noun } from '../../kit/noun.ts'

const TOKENS_PER_USER_MAXIMUM = 50
const TOKEN_DAYS_DEFAULT = 90
const DAY_MILLISECONDS = 86_400_000

const apiTokenEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  customerEndpoint(listApiTokens, (call) => list(parts, call)),
  customerEndpoint(createApiToken, (call) => create(parts, call)),
  customerEndpoint(revokeApiToken, (call) => revoke(parts, call, call.params.id, ownOnly(call.caller))),
  customerEndpoint(revokeOwnToken, (call) =>
    revoke(parts, call, call.caller.token?.id ?? '', { userId: call.caller.userId }),
  ),
]

const toView = (row: TokenRow, now: Date) =>
  viewOf(ApiToken, row, {
    status: row.revokedAt !== null ? 'revoked' : row.expiresAt !== null && row.expiresAt <= now ? 'expired' : 'active',
  })

/** Members manage their own tokens; owner and admins those of everybody. */
const ownOnly = (caller: Customer): { readonly userId?: string } =>
  caller.role === 'owner' || caller.role === 'admin' ? {} : { userId: caller.userId }

const list = (parts: IdentityParts, call: Call<typeof listApiTokens, Customer>): Promise<Answer> =>
  pageOfRows(
    parts,
    call,
    (after, limit) => listTokens(parts.db, { accountId: call.caller.accountId, ...ownOnly(call.caller), after, limit }),
    (rows) => rows.map((row) => toView(row, call.now)),
  )

async function create(parts: IdentityParts, call: Call<typeof createApiToken, Customer>): Promise<Answer> {
  const { caller, body, now } = call
  const scope: TokenScope = typeof body.scope === 'string' ? body.scope : [...new Set(body.scope)]
  const lacking =
    typeof scope === 'string'
      ? undefined
      : scope.find((permission) => !ROLE_PERMISSIONS[caller.role].includes(permission))
  if (lacking !== undefined) throw badField('scope', `your role does not hold ${lacking}`)
  const expiresAt =
    body.expires_at === undefined
      ? new Date(now.getTime() + TOKEN_DAYS_DEFAULT * DAY_MILLISECONDS)
      : body.expires_at === null
        ? null
        : new Date(body.expires_at)
  if (expiresAt !== null && expiresAt <= now) throw badField('expires_at', 'must be in the future')
  const id = newUuid(parts.random)
  const token = formatToken(scope, newBase62(parts.random, TOKEN_SECRET_CHARACTERS))
  return await parts.db.transaction().execute(async (tx) => {
    await lockUser(tx, caller.userId)
    const used = await countLiveTokens(tx, caller.userId, now)
    if (used >= TOKENS_PER_USER_MAXIMUM)
      throw quotaExceeded({ name: 'api_tokens', limit: TOKENS_PER_USER_MAXIMUM, used, requested: 1 })
    const isCreated = await createToken(tx, {
      id,
      accountId: caller.accountId,
      userId: caller.userId,
      name: body.name,
      token,
      scope,
      allowedCidrs: [...new Set(body.allowed_cidrs.map(canonicalCidr))],
      createdAt: now,
      expiresAt,
    })
    if (!isCreated) {
      const other = await findTokenNamed(tx, caller.accountId, body.name)
      throw nameTaken('The account has a token of this name.', other && { type: 'api_token', id: other.id })
    }
    const changes = [
      { field: 'name', before: null, after: body.name },
      { field: 'scope', before: null, after: scope },
    ]
    await appendAudit(tx, auditEntryOf(call, { resourceType: 'api_token', resourceId: id, changes }), parts)
    return { status: 201, body: { api_token: toView(await readToken(tx, id), now), token } }
  })
}

async function revoke(
  parts: IdentityParts,
  call: Call<typeof revokeApiToken | typeof revokeOwnToken, Customer>,
  id: string,
  whose: { readonly userId?: string },
): Promise<Answer> {
  const { caller, now } = call
  if (!isUuid(id)) throw notFound('API token')
  await parts.db.transaction().execute(async (tx) => {
    const name = await revokeToken(tx, { accountId: caller.accountId, id, ...whose, now })
    if (name === undefined) throw notFound('API token')
    await appendAudit(tx, auditEntryOf(call, { resourceType: 'api_token', resourceId: id, detail: { name } }), parts)
  })
  parts.callers.forget()
  return { status: 204 }
}

export const apiToken = noun<IdentityParts>({ name: 'api_token', endpoints: apiTokenEndpoints })
