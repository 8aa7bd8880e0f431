/** Merge patches (RFC 7396). */
import { isDeepStrictEqual } from 'node:util'

/** A merge patch that turns one map into another: missing keys are removed. */
export const replacing = (
  from: Readonly<Record<string, string>>,
  to: Readonly<Record<string, string>>,
): Record<string, string | null> => ({ ...Object.fromEntries(Object.keys(from).map((key) => [key, null])), ...to })

/** The merge patch that turns one value into another: removed members are null, and unchanged ones are left out. Lists
 *  are replaced completely. */
export function mergePatch(from: object, to: object): Record<string, unknown> {
  const [before, after] = [new Map<string, unknown>(Object.entries(from)), new Map<string, unknown>(Object.entries(to))]
  const removed = [...before.keys()].filter((key) => !after.has(key)).map((key) => [key, null] as const)
  const set = [...after]
    .filter(([key, value]) => !isDeepStrictEqual(before.get(key), value))
    .map(([key, value]) => {
      const earlier = before.get(key)
      return [key, isMap(earlier) && isMap(value) ? mergePatch(earlier, value) : value] as const
    })
  return Object.fromEntries([...removed, ...set])
}

const isMap = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value with the merge patch applied. */
export function withMergePatch<Value extends object>(value: Value, patch: object): Value {
  const result = new Map<string, unknown>(Object.entries(value))
  for (const [key, change] of new Map<string, unknown>(Object.entries(patch))) {
    const earlier = result.get(key)
    if (change === null) result.delete(key)
    else result.set(key, isMap(change) ? withMergePatch(isMap(earlier) ? earlier : {}, change) : change)
  }
  return Object.fromEntries(result) as Value // a patch takes out only what may be absent
}
