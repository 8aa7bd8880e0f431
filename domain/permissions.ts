/** The role table of the contract as data. */

export const PERMISSIONS = [
  'read',
  'operate',
  'members.manage',
  'tokens.manage',
  'billing.read',
  'billing.manage',
  'self',
] as const
export type Permission = (typeof PERMISSIONS)[number]

export const ROLES = ['owner', 'admin', 'member', 'viewer'] as const
export type Role = (typeof ROLES)[number]

export const ROLE_PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  owner: PERMISSIONS,
  admin: PERMISSIONS,
  member: ['read', 'operate', 'tokens.manage', 'self'],
  viewer: ['read', 'self'],
}

/** The roles that have the permission. */
export const rolesWith = (permission: Permission): readonly Role[] =>
  ROLES.filter((role) => ROLE_PERMISSIONS[role].includes(permission))

/** `read`, `read_write`, or exactly the listed permissions. */
export type TokenScope = 'read' | 'read_write' | readonly Permission[]

const READ_SCOPE: readonly Permission[] = ['read', 'billing.read']
const NEVER_BY_TOKEN: readonly Permission[] = ['self', 'members.manage', 'tokens.manage']

/** What a token may do now: its user's current role, limited by its scope. */
export function tokenPermissions(role: Role, scope: TokenScope): readonly Permission[] {
  const held = ROLE_PERMISSIONS[role]
  if (scope === 'read') return held.filter((permission) => READ_SCOPE.includes(permission))
  if (scope === 'read_write') return held.filter((permission) => !NEVER_BY_TOKEN.includes(permission))
  return held.filter((permission) => scope.includes(permission) && !NEVER_BY_TOKEN.includes(permission))
}

/** Areas of routes for which a token of a cluster may be issued. It acts for the cluster, within its account, and not
 *  for a person: it may use nothing outside its areas, whatever the people of the account may. */
export const CLUSTER_SCOPES = ['storages', 'load_balancers'] as const
export type ClusterScope = (typeof CLUSTER_SCOPES)[number]

/** Permissions of tokens of clusters, within their areas. */
export const CLUSTER_PERMISSIONS: readonly Permission[] = ['read', 'operate']

export const SUPPORT_MODES = ['read_only', 'elevated'] as const
export type SupportMode = (typeof SUPPORT_MODES)[number]

/** Permissions of a support session, regardless of the roles of the account's people. */
export const SUPPORT_PERMISSIONS: Readonly<Record<SupportMode, readonly Permission[]>> = {
  read_only: ['read', 'billing.read'],
  elevated: ['read', 'operate', 'billing.read'],
}

/** Roles of the staff: reads and support sessions; credits, coupons and invoices; everything. */
export const STAFF_ROLES = ['support', 'finance', 'operations'] as const
export type StaffRole = (typeof STAFF_ROLES)[number]

/** The role that a route requires of staff: a certain one, or any. */
export type StaffRule = StaffRole | 'any'

/** Whether one of the held roles is the required one; operations may do everything. */
export const hasStaffRole = (held: readonly StaffRole[], wanted: StaffRule): boolean =>
  wanted === 'any' ? held.length > 0 : held.includes('operations') || held.includes(wanted)
