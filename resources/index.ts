/** THE lists: every stored kind, and every route; one line per noun. */
import type { Route } from '../kit/http/route.ts'
import { API_TOKEN_ROUTES } from './api-token.ts'
import { AUDIT_ROUTES } from './audit.ts'
import { CATALOG_ROUTES } from './catalog.ts'
import { CONSOLE_ROUTES } from './console.ts'
import { CREDIT_ROUTES } from './credit.ts'
import type { Resource } from './define.ts'
import { IDENTITY_PROVIDER_ROUTES } from './identity-provider.ts'
import { SIGN_IN_ROUTES } from './identity.ts'
import { INIT_SCRIPT_ROUTES } from './init-script.ts'
import { Instance, NodeReport, Observation, Volume } from './instance.ts'
import { MCP_ROUTES } from './mcp.ts'
import { MEMBER_ROUTES } from './member.ts'
import { NODE_ROUTES } from './node-routes.ts'
import { Operation, OPERATION_ROUTES } from './operation.ts'
import { OPERATOR_ROUTES } from './operator-routes.ts'
import { ORGANISATION_ROUTES } from './organisation.ts'
import { Node, Plan, Region, Template, Zone } from './platform.ts'
import { PUBLIC_POOL_ROUTES, PublicPool } from './public-pool.ts'
import { QUOTA_ROUTES } from './quota.ts'
import { REPAIR_ROUTES } from './repair-routes.ts'
import { SECOND_FACTOR_ROUTES } from './second-factor.ts'
import { SERVER_GROUP_ROUTES, ServerGroup } from './server-group.ts'
import { SERVER_ROUTES } from './server-routes.ts'
import { Server } from './server.ts'
import { SESSION_ROUTES } from './session.ts'
import { SSH_KEY_ROUTES } from './ssh-key.ts'
import { STAFF_ROUTES } from './staff.ts'
import { Storage } from './storage.ts'
import { SUPPORT_ROUTES } from './support.ts'
import { USAGE_ROUTES } from './usage.ts'

export const RESOURCES: readonly Resource[] = [
  Region,
  Zone,
  Plan,
  Template,
  Node,
  PublicPool,
  Server,
  ServerGroup,
  Storage,
  Operation,
  Instance,
  Volume,
  NodeReport,
  Observation,
]

export const ROUTES: readonly Route[] = [
  ...SIGN_IN_ROUTES,
  ...SESSION_ROUTES,
  ...SECOND_FACTOR_ROUTES,
  ...IDENTITY_PROVIDER_ROUTES,
  ...MEMBER_ROUTES,
  ...ORGANISATION_ROUTES,
  ...CREDIT_ROUTES,
  ...SUPPORT_ROUTES,
  ...STAFF_ROUTES,
  ...API_TOKEN_ROUTES,
  ...QUOTA_ROUTES,
  ...AUDIT_ROUTES,
  ...CATALOG_ROUTES,
  ...SERVER_ROUTES,
  ...CONSOLE_ROUTES,
  ...USAGE_ROUTES,
  ...INIT_SCRIPT_ROUTES,
  ...SERVER_GROUP_ROUTES,
  ...SSH_KEY_ROUTES,
  ...OPERATION_ROUTES,
  ...MCP_ROUTES,
  ...NODE_ROUTES,
  ...REPAIR_ROUTES,
  ...PUBLIC_POOL_ROUTES,
  ...OPERATOR_ROUTES,
]

/** The namespace that holds an account's resources. */
export const accountNamespace = (accountId: string): string => `acct-${accountId}`
/** The account of a namespace; undefined when it is not an account's. */
export const accountOfNamespace = (namespace: string): string | undefined =>
  namespace.startsWith('acct-') ? namespace.slice(5) : undefined
