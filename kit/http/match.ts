/** Finds the endpoint of a method and path. Built once from the list of endpoints. */
import createRouter from 'find-my-way'
import { isUuid } from '../../domain/uuid.ts'
import type { Endpoint } from './endpoint.ts'
import type { Route } from './route.ts'

export type Match<Target> =
  | { readonly found: true; readonly target: Target; readonly params: Readonly<Record<string, string | undefined>> }
  /** `allow` is empty when no method knows the path. */
  | { readonly found: false; readonly allow: readonly string[] }

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const satisfies readonly Route['method'][]
const PARAMETER_LENGTH_MAXIMUM = 512

/** Throws when two endpoints share a method and path. */
export function compileMatcher<Target extends Pick<Endpoint, 'route'>>(
  targets: readonly Target[],
): (method: string, path: string) => Match<Target> {
  const router = createRouter({ maxParamLength: PARAMETER_LENGTH_MAXIMUM })
  for (const target of targets)
    router.on(target.route.method, target.route.path.replaceAll(/\{(\w+)\}/g, ':$1'), () => {}, target)
  const find = (method: Route['method'], path: string) => router.find(method, path)
  return (requestMethod, path) => {
    // HEAD is GET without the body, which the server leaves out.
    const method = requestMethod === 'HEAD' ? 'GET' : requestMethod
    // just checked
    const hit = (METHODS as readonly string[]).includes(method) ? find(method as Route['method'], path) : null
    if (hit !== null) return { found: true, target: hit.store as Target, params: lowered(hit.params) } // `on` stored it
    const others = METHODS.filter((other) => find(other, path) !== null)
    return { found: false, allow: others.flatMap((other) => (other === 'GET' ? ['GET', 'HEAD'] : [other])) }
  }
}

/** A UUID is the same in letters of either case (RFC 9562); ids are stored in lower case. */
export const loweredId = (text: string): string => (isUuid(text) ? text.toLowerCase() : text)

const lowered = (params: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(params).map(([name, value]) => [name, value && loweredId(value)]))
