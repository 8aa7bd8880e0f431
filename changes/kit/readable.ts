/** Rules for texts that people write for people, which the schema of a kind cannot express. */
import type { z } from 'zod'
import { badField } from '../../domain/problem.ts'

/** Throws 400 for a value that REST would not accept. */
export function requireReadable(field: string, schema: z.ZodType, value: unknown): void {
  const fault = schema.safeParse(value).error?.issues[0]
  if (fault !== undefined) throw badField([field, ...fault.path].join('.'), fault.message)
}
