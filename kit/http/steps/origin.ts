/** Routes that answer programs only: a browser may send their requests from our own pages, and from nowhere else. */
import { forbidden } from '../../../domain/problem.ts'
import type { StepMaker } from '../step.ts'

export const checkOrigin: StepMaker = (route, parts) =>
  !route.isSameOriginOnly
    ? undefined
    : ({ request }) => {
        const origin = request.header('origin')
        if (origin !== undefined && parts.origins?.includes(origin) !== true)
          throw forbidden('Requests of other origins are not answered here.')
      }

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** The origins that are the service's own: that of its public URL, with the other names of this machine where it is
 *  this machine. */
export function ownOrigins(publicUrl: string): readonly string[] {
  const { protocol, hostname, port, origin } = new URL(publicUrl)
  if (!LOOPBACK.includes(hostname)) return [origin]
  return LOOPBACK.map((name) => `${protocol}//${name}${port === '' ? '' : `:${port}`}`)
}
