/** Rules for texts that people write for people, which the schema of a kind cannot express. */
import type { z } from 'zod'
import { badField } from '../../domain/problem.ts'
import { fieldErrorsOf } from '../../kit/sys/field-errors.ts'

/** Throws 400 for a value that REST would not accept, in the same words. */
export function requireReadable(field: string, schema: z.ZodType, value: unknown): void {
  const { error } = schema.safeParse(value)
  const [fault] = error === undefined ? [] : fieldErrorsOf(error, value)
  if (fault !== undefined) throw badField([field, fault.field].filter((part) => part !== '').join('.'), fault.detail)
}
