/** What a schema refuses, in sentences for people: zod's own messages are for programmers. */
import type { z } from 'zod'
import type { FieldError } from '../../domain/problem.ts'

/** A refusal for each field of `value`, in the order of the schema; the details complete a sentence that begins with
 *  the field. */
export const fieldErrorsOf = ({ issues }: z.ZodError, value: unknown): readonly FieldError[] =>
  issues.flatMap((issue) => fieldErrors(issue, value))

function fieldErrors(issue: z.core.$ZodIssue, input: unknown): FieldError[] {
  const field = issue.path.map(String).join('.')
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ field: field === '' ? key : `${field}.${key}`, detail: 'is not known here' }))
  if (issue.code === 'invalid_union') {
    const [nearest] = [...issue.errors].sort((one, other) => depth(other) - depth(one))
    const deeper = nearest?.[0]
    if (deeper !== undefined && depth(nearest ?? []) > 0)
      return fieldErrors({ ...deeper, path: [...issue.path, ...deeper.path] }, input)
    return [{ field, detail: 'has none of the accepted forms' }]
  }
  if (issue.code === 'invalid_key') {
    const [cause] = issue.issues
    return [{ field, detail: `is not an accepted name${cause === undefined ? '' : `: ${sentence(cause)}`}` }]
  }
  return [{ field, detail: isMissing(issue, input) && !isOwnWording(issue) ? 'is required' : sentence(issue) }]
}

const depth = (issues: readonly z.core.$ZodIssue[]): number => Math.max(0, ...issues.map((issue) => issue.path.length))

function isMissing(issue: z.core.$ZodIssue, input: unknown): boolean {
  let value = input
  for (const part of issue.path)
    value = typeof value === 'object' && value !== null ? Reflect.get(value, part) : undefined
  return issue.path.length > 0 && value === undefined
}

/** A rule between fields states itself what is missing. */
const isOwnWording = ({ code, message }: z.core.$ZodIssue): boolean => code === 'custom' && !isZodWording(message)

/** Zod's own messages are for programmers; a schema's own message is kept. */
const isZodWording = (message: string): boolean => /^(Invalid|Too |Unrecognized)/.test(message)

function sentence(issue: z.core.$ZodIssue): string {
  if (!isZodWording(issue.message)) return issue.message
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${article(issue.expected)}`
    case 'too_small':
      return issue.origin === 'string'
        ? `must have at least ${issue.minimum} ${plural(issue.minimum, 'character')}`
        : issue.origin === 'array'
          ? `must have at least ${issue.minimum} ${plural(issue.minimum, 'item')}`
          : `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`
    case 'too_big':
      return issue.origin === 'string'
        ? `must have at most ${issue.maximum} ${plural(issue.maximum, 'character')}`
        : issue.origin === 'array'
          ? `must have at most ${issue.maximum} ${plural(issue.maximum, 'item')}`
          : `must be ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`
    case 'invalid_value':
      return issue.values.length === 1
        ? `must be ${issue.values.map(String).join('')}`
        : `must be one of ${issue.values.map(String).join(', ')}`
    case 'invalid_format':
      return `must be ${article(FORMAT_NAMES[issue.format] ?? 'string of the right form')}`
    default:
      return 'is invalid'
  }
}

const FORMAT_NAMES: Readonly<Record<string, string>> = {
  uuid: 'UUID',
  email: 'email address',
  datetime: 'RFC 3339 date-time',
  base64: 'base64 string',
  url: 'URL',
  ipv4: 'IPv4 address',
  ipv6: 'IPv6 address',
}
const NAMES: Readonly<Record<string, string>> = { int: 'integer', record: 'object' }
const plural = (count: number | bigint, noun: string): string => (Number(count) === 1 ? noun : `${noun}s`)
function article(noun: string): string {
  const name = NAMES[noun] ?? noun
  return `${/^(a|e|i|o|RFC|IP)/.test(name) ? 'an' : 'a'} ${name}`
}
