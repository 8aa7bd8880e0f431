/** Unsafe requests on a session prove that a page of our own made them: the header equals the cookie, and both are what the session issued. */
import { timingSafeEqual } from 'node:crypto'
import { forbidden } from '../../../domain/problem.ts'
import { isSignedIn, isUnsafe, type StepMaker } from '../passage.ts'

export const CSRF_HEADER = 'x-csrf-token'
export const CSRF_COOKIE = 'svccloud_csrf'

export const checkCsrf: StepMaker = (route) => {
  if (!isUnsafe(route) || !route.credentials.includes('session')) return undefined
  return ({ caller, request }) => {
    if (!isSignedIn(caller) || caller.session === undefined) return
    const header = request.header(CSRF_HEADER)
    const isOwn = header !== undefined && isEqual(header, caller.session.csrfToken) && isEqual(header, request.cookie(CSRF_COOKIE) ?? '')
    if (!isOwn) throw forbidden('Send the X-CSRF-Token header with the value of the svccloud_csrf cookie.')
  }
}

function isEqual(one: string, other: string): boolean {
  const left = Buffer.from(one)
  const right = Buffer.from(other)
  return left.length === right.length && timingSafeEqual(left, right)
}
