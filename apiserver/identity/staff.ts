/** Staff: their sessions on the operator listener, and tokens of the management cluster, which one RBAC governs
 *  together with kubectl. Customers' credentials are not valid here, and staff credentials are not valid on the
 *  customer listener. */
import { defined } from '../../domain/defined.ts'
import { STAFF_ROLES, type StaffRole } from '../../domain/permissions.ts'
import { forbidden, unauthenticated } from '../../domain/problem.ts'
import type { Database } from '../../db/kit/open.ts'
import { hashSecret } from '../../db/identity/index.ts'
import { findStaffSession } from '../../db/staff/index.ts'
import type { Operator, RequestFacts } from '../../kit/http/call.ts'
import type { OperatorAccess } from '../../kit/http/route.ts'
import { reviewAccess, type Reviewing, reviewToken } from '../../kit/kube/reviews.ts'
import type { Transport } from '../../kit/kube/transport.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { API_GROUP } from '../../resources/kit/define.ts'

export const STAFF_SESSION_COOKIE = 'svccloud_staff_session'
export const STAFF_CSRF_COOKIE = 'svccloud_staff_csrf'
const SECRET_CHARACTERS_MAXIMUM = 128
const KEPT_MILLISECONDS = 5_000
const KEPT_MAXIMUM = 1_000

export interface StaffCallerParts {
  readonly db: Database
  readonly clock: Clock
  readonly csrfTokenOf: (sessionId: string) => string
  /** Reaches the management cluster; without it its tokens are refused. */
  readonly kubernetes?: Transport | undefined
}

/** Undefined without credentials or with a dead session; throws 401 for a token that the cluster does not know. */
export function createStaffAuthentication(
  parts: StaffCallerParts,
): (request: RequestFacts) => Promise<Operator | undefined> {
  const entries = new Map<string, { readonly until: number; readonly operator: Promise<Operator | undefined> }>()
  const { kubernetes } = parts
  return async (request) => {
    const authorization = request.header('authorization')
    if (authorization !== undefined) {
      const token = /^bearer +(\S+)$/i.exec(authorization)?.[1]
      if (token === undefined || kubernetes === undefined) throw unauthenticated('The token is not valid here.')
      const now = parts.clock.monotonicMilliseconds()
      const key = hashSecret(token).toString('base64')
      const found = entries.get(key)
      if (found === undefined || found.until <= now) {
        if (entries.size >= KEPT_MAXIMUM) entries.clear()
        const operator = findOperator({ kubernetes, clock: parts.clock }, token)
        operator.catch(() => entries.delete(key))
        entries.set(key, { until: now + KEPT_MILLISECONDS, operator })
      }
      const operator = await entries.get(key)?.operator
      if (operator === undefined) throw unauthenticated('The token is not valid here.')
      return operator
    }
    const secret = request.cookie(STAFF_SESSION_COOKIE)
    if (secret === undefined || secret === '' || secret.length > SECRET_CHARACTERS_MAXIMUM) return undefined
    const found = await findStaffSession(parts.db, secret, parts.clock.now())
    if (found === undefined) return undefined
    const { staff, sessionId } = found
    return {
      kind: 'operator',
      name: staff.email,
      actor: 'operator',
      roles: [staff.role],
      groups: [],
      staff: { id: staff.id, email: staff.email, name: staff.name, sessionId, csrfToken: parts.csrfTokenOf(sessionId) },
    }
  }
}

/** TokenReview identifies the operator; one SubjectAccessReview per staff role finds what they may do. */
async function findOperator(reviewing: Reviewing, token: string): Promise<Operator | undefined> {
  const user = await reviewToken(reviewing, token)
  if (user === undefined) return undefined
  const roles: StaffRole[] = []
  for (const role of STAFF_ROLES)
    if (await isAllowed(reviewing, user, { resource: 'staffroles', name: role, verb: 'use' })) roles.push(role)
  return { kind: 'operator', ...user, actor: 'operator', roles }
}

/** Throws 403, which names what is missing, unless the management cluster lets the operator do it with kubectl; staff
 *  have roles instead. */
export function createAccessReview({
  kubernetes,
  clock,
}: Pick<StaffCallerParts, 'kubernetes' | 'clock'>): (
  operator: Operator,
  access: Pick<OperatorAccess, 'verb' | 'resource'>,
  namespace?: string,
) => Promise<void> {
  return async (operator, { verb, resource }, namespace) => {
    if (operator.staff !== undefined) return
    if (
      kubernetes !== undefined &&
      (await isAllowed({ kubernetes, clock }, operator, { verb, resource, ...defined({ namespace }) }))
    )
      return
    throw forbidden(
      `This needs the verb ${verb} on ` +
        `${resource}.${API_GROUP}${namespace === undefined ? '' : ` in the namespace ${namespace}`}, in the ` +
        'management cluster.',
    )
  }
}

const isAllowed = (
  reviewing: Reviewing,
  { name, groups }: Pick<Operator, 'name' | 'groups'>,
  attributes: { readonly verb: string; readonly resource: string; readonly name?: string; readonly namespace?: string },
): Promise<boolean> =>
  reviewAccess(reviewing, { name, groups }, { resourceAttributes: { group: API_GROUP, ...attributes } })
