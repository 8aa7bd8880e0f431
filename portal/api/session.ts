/** Who is signed in, and what they may do. */
import type { Answer, OperationId } from './operations.ts'
import { cache, forget, keyOf, useRead } from './cache.ts'
import { call } from './client.ts'
import { portal, ruleOf } from './portal.ts'
import { Refusal } from './refusal.ts'

export type Me = Answer<'get_current_user'>

export const useMe = (): Me | undefined => useRead('get_current_user').data

/** Whether the signed-in person may call the operation; a role that never may does not see it. */
export function useMay(): (id: OperationId) => boolean {
  const { me, permits } = portal()
  const { data } = useRead(me)
  return (id) => permits(ruleOf(id), data)
}

/** Reads who is signed in; undefined when nobody is. */
export async function signedIn(): Promise<Me | undefined> {
  try {
    return await cache.fetchQuery({
      queryKey: keyOf('get_current_user'),
      queryFn: () => call('get_current_user', { isSigningIn: true }),
      staleTime: 60_000,
      retry: false,
    })
  } catch {
    return undefined
  }
}

/** Ends the session. Answers where the browser goes next: the provider's own sign-out, or the page of sign-in. Throws a
 *  Refusal while the session goes on. */
export async function signOut(): Promise<string> {
  const answer: { readonly logout_url?: string } | undefined = await call('log_out', { isSigningIn: true }).catch(
    unlessEnded,
  )
  forget()
  const url = answer?.logout_url
  return url !== undefined && url.startsWith('https:') ? url : '/login'
}

/** A sign-out that is refused because there is no session has what it wanted. */
export function unlessEnded(error: unknown): undefined {
  if (!(error instanceof Refusal) || error.status !== 401) throw error
}
