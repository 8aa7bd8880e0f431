/** How the interfaces state that a body needs exactly one of several fields, as its schema declares with
 *  `exactlyOneOf`. */
import type { z } from 'zod'
import { exactlyOneIn } from './route.ts'

/** For people: `Exactly one of a and b is given.` Undefined for other schemas. */
export const exactlyOneText = (schema: z.ZodType | null): string | undefined => {
  const fields = exactlyOneIn(schema)
  return fields.length === 0 ? undefined : `Exactly one of ${joinedNames(fields)} is given.`
}

/** `a`, `a and b`, `a, b and c`. */
export const joinedNames = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
