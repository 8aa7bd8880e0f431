/** API tokens of users: public shape and routes. Managed from a portal session only. */
import { z } from 'zod'
import { PERMISSIONS } from '../../domain/permissions.ts'
import { route } from '../kit/define.ts'
import { DateTime, pageOf, Uuid } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { ObjectName } from '../kit/fields.ts'

export const ALLOWED_CIDRS_MAXIMUM = 50

const Permission = z.enum(PERMISSIONS).meta({ id: 'Permission' })
const Scope = z.union([z.enum(['read', 'read_write']), z.array(Permission).min(1).max(PERMISSIONS.length)])
const Cidr = z.union([z.cidrv4(), z.cidrv6()])

export const ApiToken = z
  .strictObject({
    id: Uuid,
    name: z.string(),
    scope: Scope,
    token_hint: z.string(),
    user_id: Uuid,
    user_email: z.string(),
    created_at: DateTime,
    expires_at: DateTime.nullable(),
    last_used_at: DateTime.nullable(),
    last_used_ip: z.string().nullable(),
    allowed_cidrs: z.array(z.string()),
    status: z.enum(['active', 'expired', 'revoked']),
  })
  .meta({ id: 'ApiToken' })

const tokens = verbsOf({
  path: '/v1/account/tokens',
  noun: 'token',
  view: ApiToken,
  credentials: ['session'],
  permission: 'tokens.manage',
  isRefusedToSupport: true,
})

export const listApiTokens = tokens.list('list_api_tokens', {
  summary: 'List API tokens',
  description: 'Newest first. Members see their own tokens; the owner and admins see all.',
  answers: { 200: pageOf(ApiToken) },
})

export const createApiToken = tokens.create('create_api_token', {
  summary: 'Create an API token',
  description:
    'Only this answer contains the token. It acts as its creator, limited by the scope. Without expires_at it ' +
    'expires after 90 days; with null it never expires.',
  audit: 'account.token_created',
  body: z.strictObject({
    name: z
      .string()
      .trim()
      .min(1)
      .max(100)
      .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must be printable'),
    scope: Scope,
    expires_at: DateTime.nullable().optional(),
    allowed_cidrs: z.array(Cidr).max(ALLOWED_CIDRS_MAXIMUM).default([]),
  }),
  example: { name: 'laptop', scope: 'read_write', allowed_cidrs: ['192.0.2.0/24'] },
  secretFields: ['token'],
  answers: { 201: z.strictObject({ api_token: ApiToken, token: z.string() }) },
  refuses: [400, 409, 422],
})

export const revokeApiToken = tokens.remove('revoke_api_token', {
  summary: 'Revoke an API token',
  description: 'All replicas refuse it within a second.',
  audit: 'account.token_revoked',
  params: z.strictObject({ id: ObjectName }),
  refuses: [404],
})

export const revokeOwnToken = route({
  id: 'revoke_own_token',
  method: 'DELETE',
  path: '/v1/account/token',
  summary: 'Revoke the API token of this request',
  description: 'Every token may revoke itself, whatever its scope. All replicas refuse it within a second.',
  credentials: ['token'],
  permission: null,
  audit: 'account.token_revoked',
  noDryRun: 'it ends the credentials of the caller',
  isDestructive: true,
  answers: { 204: null },
})

export const API_TOKEN_ROUTES = [listApiTokens, createApiToken, revokeApiToken, revokeOwnToken] as const
