/** Forms of operations: what a field accepts comes from the route. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { defined } from '../../domain/defined.ts'
import type { BodySchema, FieldSchema } from '../api/body-schema.ts'
import { portal } from '../api/portal.ts'
import type { Texts } from '../texts/index.ts'
import type { FormField, Values } from './noun.ts'

/** Bodies of all operations; undefined while they are read. */
export function useBodies(): Readonly<Record<string, BodySchema>> | undefined {
  return useQuery({
    queryKey: ['bodies'],
    queryFn: () => portal().bodies(),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  }).data
}

/** The schema of a field without the choice of null. */
export function schemaOf(body: BodySchema, name: string): FieldSchema {
  const schema = body.properties?.[name] ?? {}
  const value = schema.anyOf?.find(({ type }) => type !== 'null')
  return value === undefined ? schema : { ...value, ...defined({ description: schema.description }) }
}

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
): string | undefined {
  if (isEmpty(value)) return needed ? texts.missing : undefined
  if (typeof value === 'number') {
    if (!Number.isInteger(value)) return texts.whole
    if (schema.minimum !== undefined && value < schema.minimum) return texts.low(schema.minimum)
    if (schema.maximum !== undefined && value > schema.maximum) return texts.high(schema.maximum)
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
  return Object.fromEntries(entries)
}

/** What is changed, by field. An empty value is sent when there was another; one that was never filled in is not. */
export function changesOf(fields: readonly FormField[], before: Values, after: Values): Record<string, unknown> {
  return Object.fromEntries(
    fields
      .map(({ name, toBody }) => [name, toBody === undefined ? after[name] : toBody(after[name])] as const)
      .filter(([name, value]) => value !== undefined && JSON.stringify(value) !== JSON.stringify(before[name]))
      .filter(([name, value]) => !(isEmpty(value) && isEmpty(before[name]))),
  )
}

export interface Form {
  readonly values: Values
  readonly errors: Readonly<Record<string, string>>
  readonly set: (name: string, value: unknown) => void
  readonly setErrors: (errors: Readonly<Record<string, string>>) => void
  /** Something was changed since it was opened. */
  readonly isTouched: boolean
}

export function useForm(initial: Values): Form {
  const [values, setValues] = useState<Values>(initial)
  const [errors, setErrors] = useState<Readonly<Record<string, string>>>({})
  const [isTouched, setTouched] = useState(false)
  const set = (name: string, value: unknown): void => {
    setValues((before) => ({ ...before, [name]: value }))
    setTouched(true)
    setErrors(({ [name]: _mended, ...others }) => others)
  }
  return { values, errors, set, setErrors, isTouched }
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
        const fault = faultOf(schemaOf(body, name), values[name], isNeeded(body, field), texts)
        return fault === undefined ? [] : [[name, fault] as const]
      }),
  )
}
