/** Routes that answer programs only: a browser may send their requests from our own pages, and from nowhere else. */
import { forbidden } from '../../../domain/problem.ts'
import { LOOPBACK_HOSTS } from '../loopback.ts'
import type { StepMaker } from '../step.ts'

export const checkOrigin: StepMaker = (route, parts) =>
  !route.isSameOriginOnly
    ? undefined
    : ({ request }) => {
        const origin = request.header('origin')
        if (origin !== undefined && parts.origins?.includes(origin) !== true)
          throw forbidden('Requests of other origins are not answered here.')
      }

/** The origins that are the service's own: that of its public URL, with the other names of this machine where it is
 *  this machine. */
export function ownOrigins(publicUrl: string): readonly string[] {
  const { protocol, hostname, port, origin } = new URL(publicUrl)
  if (!LOOPBACK_HOSTS.includes(hostname)) return [origin]
  return LOOPBACK_HOSTS.map((name) => `${protocol}//${name}${port === '' ? '' : `:${port}`}`)
}
