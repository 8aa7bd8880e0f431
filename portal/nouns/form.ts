/** Forms of operations: what a field accepts comes from the route. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { defined } from '../../domain/defined.ts'
import type { BodySchema, FieldSchema } from '../api/body-schema.ts'
import { portal } from '../api/portal.ts'
import { number } from '../texts/format.ts'
import type { Texts } from '../texts/index.ts'
import { loadNotes } from '../texts/notes.ts'
import type { FormField, Values } from './noun.ts'

/** Bodies of all operations; undefined while they are read. */
export function useBodies(): Readonly<Record<string, BodySchema>> | undefined {
  return useQuery({
    queryKey: ['bodies'],
    queryFn: async () => (await Promise.all([portal().bodies(), loadNotes(portal().notes)]))[0],
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  }).data
}

/** The schema of a field without the choice of null. `bmc.address` is a field of the object `bmc`. */
export function schemaOf(body: Pick<BodySchema, 'properties'>, name: string): FieldSchema {
  const [first = '', ...rest] = name.split('.')
  const schema = body.properties?.[first] ?? {}
  const value = schema.anyOf?.find(({ type }) => type !== 'null')
  const own = value === undefined ? schema : { ...value, ...defined({ description: schema.description }) }
  return rest.length === 0 ? own : schemaOf(own, rest.join('.'))
}

/** The schema of the items of a list in a body. */
export function itemSchemaOf(body: BodySchema, list: string): Pick<BodySchema, 'properties' | 'required'> {
  const items = body.properties?.[list]?.items ?? {}
  const name = items.$ref?.split('/').at(-1)
  return name === undefined ? items : (body.$defs?.[name] ?? {})
}

const isNullable = (body: BodySchema, name: string): boolean =>
  body.properties?.[name]?.anyOf?.some(({ type }) => type === 'null') === true

export const isNeeded = (body: BodySchema, { name, isNeeded: isOneOf }: FormField): boolean =>
  isOneOf === true || body.required?.includes(name) === true

export const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (typeof value === 'object' && Object.keys(value).length === 0)

const LABEL_PATTERN = /^\^\[a-z0-9\]/

/** What is wrong with a value by its schema; undefined when nothing is. The service judges the rest. */
export function faultOf(
  schema: FieldSchema,
  value: unknown,
  needed: boolean,
  texts: Texts['problem']['field'],
  limitText: (limit: number) => string = number,
): string | undefined {
  if (isEmpty(value)) return needed ? texts.missing : undefined
  if (typeof value === 'number') {
    if (!Number.isInteger(value)) return texts.whole
    if (schema.minimum !== undefined && value < schema.minimum) return texts.low(limitText(schema.minimum))
    if (schema.maximum !== undefined && value > schema.maximum) return texts.high(limitText(schema.maximum))
  }
  if (typeof value !== 'string') return undefined
  if (schema.type === 'integer') return texts.whole
  if (schema.minLength !== undefined && value.length < schema.minLength) return texts.short(schema.minLength)
  if (schema.maxLength !== undefined && value.length > schema.maxLength) return texts.long(schema.maxLength)
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value))
    return LABEL_PATTERN.test(schema.pattern) ? texts.label : texts.pattern
  return undefined
}

/** The body of the request: what is empty is left out. */
export function bodyOf(fields: readonly FormField[], values: Values): Record<string, unknown> {
  const entries = fields
    .filter(({ isShown }) => isShown?.(values) !== false)
    .map(({ name, toBody }) => [name, toBody === undefined ? values[name] : toBody(values[name])] as const)
    .filter(([, value]) => !isEmpty(value))
  const body: Record<string, unknown> = {}
  for (const [name, value] of entries) {
    const [first = '', second] = name.split('.')
    body[first] = second === undefined ? value : { ...Object(body[first]), [second]: value }
  }
  return body
}

/** The body of a change: what differs from what the form held at first. What was emptied is null where there may be
 *  none, else empty; what was never filled in is not sent. */
export function changesOf(
  fields: readonly FormField[],
  schema: BodySchema,
  { before, after }: { readonly before: Values; readonly after: Values },
): Record<string, unknown> {
  return Object.fromEntries(
    fields
      .map(({ name, toBody }) => [name, toBody === undefined ? after[name] : toBody(after[name])] as const)
      .map(([name, value]) => [name, isEmpty(value) && isNullable(schema, name) ? null : value] as const)
      .filter(([name, value]) => value !== undefined && JSON.stringify(value) !== JSON.stringify(before[name]))
      .filter(([name, value]) => !(isEmpty(value) && isEmpty(before[name]))),
  )
}

export interface Form {
  readonly values: Values
  readonly errors: Readonly<Record<string, string>>
  readonly set: (name: string, value: unknown) => void
  /** Says what is wrong, and asks for the focus there. */
  readonly setErrors: (errors: Readonly<Record<string, string>>) => void
  /** How often something was found to be wrong. */
  readonly faultCount: number
  /** Something was changed since it was opened. */
  readonly isTouched: boolean
}

export function useForm(initial: Values): Form {
  const [values, setValues] = useState<Values>(initial)
  const [errors, keepErrors] = useState<Readonly<Record<string, string>>>({})
  const [faultCount, setFaultCount] = useState(0)
  const [isTouched, setTouched] = useState(false)
  const set = (name: string, value: unknown): void => {
    setValues((before) => ({ ...before, [name]: value }))
    setTouched(true)
    keepErrors(({ [name]: _mended, ...others }) => others)
  }
  const setErrors = (next: Readonly<Record<string, string>>): void => {
    keepErrors(next)
    if (Object.keys(next).length > 0) setFaultCount((before) => before + 1)
  }
  return { values, errors, set, setErrors, faultCount, isTouched }
}

/** Errors of all fields, by name; empty when the form can be sent. */
export function faultsOf(
  fields: readonly FormField[],
  body: BodySchema,
  values: Values,
  texts: Texts['problem']['field'],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    fields
      .filter(({ isShown }) => isShown?.(values) !== false)
      .flatMap((field) => {
        const { name } = field
        const fault = faultOf(schemaOf(body, name), values[name], isNeeded(body, field), texts, field.limitText)
        return fault === undefined ? [] : [[name, fault] as const]
      }),
  )
}
