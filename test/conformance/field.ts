/** Dotted paths into JSON. */

import type { FieldPath } from './scenario.ts'

/** The value at a dotted path; undefined where the path leaves the data. `*` takes every item of a list. */
export function at(value: unknown, path: FieldPath): unknown {
  const [part, ...rest] = path.split('.')
  if (typeof value !== 'object' || value === null || part === undefined) return undefined
  if (part === '*') return Array.isArray(value) ? value.map((item) => at(item, rest.join('.')) ?? null) : undefined
  const field = (value as Record<string, unknown>)[part] // an array answers its indexes the same way
  return rest.length === 0 ? field : at(field, rest.join('.'))
}

/** Only these parts of the value, each under its path; null where there is nothing. */
export const pick = (value: unknown, paths: readonly FieldPath[]): Record<string, unknown> =>
  Object.fromEntries(paths.map((path) => [path, at(value, path) ?? null]))
