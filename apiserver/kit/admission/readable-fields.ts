/** Rules for texts that people write for people, which the schema of a kind cannot express. */
import { badField } from '../../../domain/problem.ts'
import type { z } from 'zod'
import { Labels, PrintableName } from '../../../resources/kit/shapes.ts'

/** Throws 400 for labels that the API would not accept. */
export const requireLabels = ({
  labels = {},
}: {
  readonly labels?: Readonly<Record<string, string>> | undefined
}): void => requireField('spec.labels', Labels, labels)

/** Throws 400 for a value that the API would not accept. */
function requireField(field: string, schema: z.ZodType, value: unknown): void {
  const fault = schema.safeParse(value).error?.issues[0]
  if (fault !== undefined) throw badField([field, ...fault.path].join('.'), fault.message)
}

/** Throws 400 for a name that the API would not accept. */
export const requirePrintableName = ({ name }: { readonly name: string }): void =>
  requireField('spec.name', PrintableName, name)
