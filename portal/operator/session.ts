/** Which member of staff is signed in. */
import { cache, forget, keyOf, useRead } from '../api/cache.ts'
import { call } from '../api/client.ts'
import type { Answer } from '../api/operations.ts'
import { unlessEnded } from '../api/session.ts'

export type Staff = Answer<'get_current_staff'>['staff']

export const useStaff = (): Staff | undefined => useRead('get_current_staff').data?.staff

/** Reads who is signed in; undefined when nobody is. */
export async function signedInStaff(): Promise<Staff | undefined> {
  try {
    const { staff } = await cache.fetchQuery({
      queryKey: keyOf('get_current_staff'),
      queryFn: () => call('get_current_staff', { isSigningIn: true }),
      staleTime: 60_000,
      retry: false,
    })
    return staff
  } catch {
    return undefined
  }
}

/** Ends the session, and what was read with it. Throws a Refusal while the session goes on. */
export async function signOutStaff(): Promise<void> {
  await call('log_out_staff', { isSigningIn: true }).catch(unlessEnded)
  forget()
}
