/** Routes for programs only: a browser may send requests to them from our own pages, and from nowhere else. */
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

/** The service's own origins: that of its public URL, and the other names of this machine if the URL names this
 *  machine. */
export function ownOrigins(publicUrl: string): readonly string[] {
  const { protocol, hostname, port, origin } = new URL(publicUrl)
  if (!LOOPBACK_HOSTS.includes(hostname)) return [origin]
  return LOOPBACK_HOSTS.map((name) => `${protocol}//${name}${port === '' ? '' : `:${port}`}`)
}
