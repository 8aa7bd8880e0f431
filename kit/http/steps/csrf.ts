/** Unsafe requests on a session prove that a page of our own made them: the header equals the cookie, and both have the
 *  value that the session issued. */
import { timingSafeEqual } from 'node:crypto'
import { forbidden } from '../../../domain/problem.ts'
import { isSignedIn, isUnsafe, type StepMaker } from '../step.ts'

const CSRF_HEADER = 'x-csrf-token'
export const CSRF_COOKIE = 'svccloud_csrf'

export const STAFF_CSRF_COOKIE = 'svccloud_staff_csrf'

export const checkCsrf: StepMaker = (route) => {
  if (!isUnsafe(route) || !(route.credentials.includes('session') || route.credentials.includes('operator')))
    return undefined
  return ({ caller, request }) => {
    const [issued, cookie] = isSignedIn(caller)
      ? [caller.session?.csrfToken, CSRF_COOKIE]
      : caller.kind === 'operator'
        ? [caller.staff?.csrfToken, STAFF_CSRF_COOKIE]
        : []
    if (issued === undefined || cookie === undefined) return
    const header = request.header(CSRF_HEADER)
    const isOwn = header !== undefined && isEqual(header, issued) && isEqual(header, request.cookie(cookie) ?? '')
    if (!isOwn) throw forbidden(`Send the X-CSRF-Token header with the value of the ${cookie} cookie.`)
  }
}

function isEqual(one: string, other: string): boolean {
  const left = Buffer.from(one)
  const right = Buffer.from(other)
  return left.length === right.length && timingSafeEqual(left, right)
}
