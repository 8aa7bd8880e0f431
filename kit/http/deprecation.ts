/** Announces that a route will be removed: `Deprecation` (RFC 9745) and `Sunset` (RFC 8594) on every answer, from the
 *  day of the announcement. */
import type { Route } from './route.ts'

/** Names in lower case; empty for routes that stay. */
export function deprecationHeaders({ deprecation }: Pick<Route, 'deprecation'>): Readonly<Record<string, string>> {
  if (deprecation === null) return {}
  return { deprecation: `@${Math.floor(deprecation.at.getTime() / 1000)}`, sunset: deprecation.sunsetAt.toUTCString() }
}
