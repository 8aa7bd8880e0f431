/** Streams and requests that wait outlast the access that they were granted with: roles change, members leave, tokens
 *  are revoked. While they last, the caller's authentication and permission are checked again and again. */
import { forbidden, Problem } from '../../domain/problem.ts'
import type { Clock } from '../sys/clock.ts'
import type { Caller } from './call.ts'
import { isSignedIn, type LastingAccess, type Step, type StepContext } from './step.ts'

const ACCESS_SECONDS = 5

/** Repeats the steps every few seconds, with the current owner of the request's credentials. Access is lost when a step
 *  refuses, or the caller has changed. A check that fails for now is retried. */
export function holdAccess(context: StepContext, steps: readonly Step[], clock: Clock): LastingAccess {
  const { request } = context
  const lost = new AbortController()
  const subject = subjectOf(context.caller)
  let cancel = () => {}
  let hasEnded = false
  const end = () => {
    hasEnded = true
    cancel()
    request.signal.removeEventListener('abort', end)
  }
  const askLater = () => {
    cancel = clock.after(ACCESS_SECONDS * 1000, () => {
      void isAllowed(context, steps, subject).then((isGood) => {
        if (hasEnded) return
        if (isGood) return askLater()
        end()
        lost.abort('access lost')
      })
    })
  }
  request.signal.addEventListener('abort', end, { once: true })
  askLater()
  return {
    request: { ...request, signal: AbortSignal.any([request.signal, lost.signal]) },
    confirm: () => requireAccess(context, steps, subject),
    end,
  }
}

/** Throws a Problem (401, 403) when a step refuses the current owner of the credentials, or that is another caller. */
async function requireAccess(context: StepContext, steps: readonly Step[], subject: string): Promise<void> {
  const again: StepContext = { ...context, caller: { kind: 'public' } }
  for (const step of steps) await step(again)
  if (subjectOf(again.caller) !== subject) throw forbidden('The rights of the caller changed meanwhile. Ask again.')
}

/** A check that fails for another reason says nothing about the access. */
const isAllowed = (...args: Parameters<typeof requireAccess>): Promise<boolean> =>
  requireAccess(...args).then(
    () => true,
    (error: unknown) => !(error instanceof Problem),
  )

/** With the permissions: an answer may show more than its route's own permission allows. */
const subjectOf = (caller: Caller): string =>
  isSignedIn(caller)
    ? `${caller.accountId} ${caller.userId} ${caller.permissions.join()}`
    : caller.kind === 'operator'
      ? caller.name
      : ''
