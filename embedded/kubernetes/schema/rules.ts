/** x-kubernetes-validations: CEL rules in a schema, evaluated for a value and its old value. */
import { Optional } from '@marcbachmann/cel-js'
import { isEqual, isList, isObject, type Json } from '../core/json.ts'
import { fieldDuplicate, fieldForbidden, fieldInvalid, fieldRequired, type Cause } from '../core/status.ts'
import { type CelValue, celValue, compileCel } from './cel.ts'
import { formerItem, memberSchema, type ValidationRule, type Schema } from './schema.ts'

/** Whether the rule refers to the old value. */
const isTransition = (rule: ValidationRule): boolean => /\boldSelf\b/.test(rule.rule)

/** Faults of the value by the rules of its schema and everything below it. An unchanged value may still violate rules
 *  that it violated before; these violations are added to `tolerated`. `old` is undefined for a new value, or one
 *  without an identifiable old value. */
export function ruleFaults(
  value: Json | undefined,
  old: Json | undefined,
  schema: Schema,
  field = '',
  tolerated: Cause[] = [],
): Cause[] {
  if (value === undefined || value === null) return []
  if (!hasRules(schema)) return []
  const { 'x-kubernetes-validations': rules = [] } = schema
  const checked: CheckedValue = {
    value,
    old,
    self: once(() => celValue(value, schema)),
    oldSelf: once(() => (old === undefined ? undefined : celValue(old, schema))),
  }
  return [
    ...rules.flatMap((rule) => faultOf(rule, checked, schema, field, tolerated)),
    ...faultsBelow(value, old, schema, field, tolerated),
  ]
}

/** A value with rules, and its old value. The CEL values are created for the first rule that needs them. */
interface CheckedValue {
  readonly value: Json
  readonly old: Json | undefined
  readonly self: () => CelValue
  readonly oldSelf: () => CelValue
}

function once<T>(make: () => T): () => T {
  let cache: { readonly value: T } | undefined
  return () => (cache ??= { value: make() }).value
}

function faultsBelow(value: Json, old: Json | undefined, schema: Schema, field: string, tolerated: Cause[]): Cause[] {
  if (isObject(value)) {
    return Object.entries(value).flatMap(([key, member]) => {
      const known = memberSchema(schema, key)
      const here =
        schema.additionalProperties && !schema.properties ? `${field}[${key}]` : field === '' ? key : `${field}.${key}`
      return known ? ruleFaults(member, isObject(old) ? old[key] : undefined, known, here, tolerated) : []
    })
  }
  const { items } = schema
  return isList(value) && items
    ? value.flatMap((item, index) =>
        ruleFaults(item, formerItem(item, old, schema), items, `${field}[${index}]`, tolerated),
      )
    : []
}

const known = new WeakMap<Schema, boolean>()

/** Whether there is a rule at or below the schema. */
export function hasRules(schema: Schema): boolean {
  let found = known.get(schema)
  if (found === undefined) {
    const { properties = {}, items, additionalProperties } = schema
    const below = [
      ...Object.values(properties),
      ...(items ? [items] : []),
      ...(typeof additionalProperties === 'object' ? [additionalProperties] : []),
    ]
    found = (schema['x-kubernetes-validations'] ?? []).length > 0 || below.some(hasRules)
    known.set(schema, found)
  }
  return found
}

function faultOf(
  rule: ValidationRule,
  checked: CheckedValue,
  schema: Schema,
  field: string,
  tolerated: Cause[],
): Cause[] {
  const { value, old } = checked
  const isOptional = rule.optionalOldSelf === true
  if (isTransition(rule) && old === undefined && !isOptional) return []
  const faults = brokenBy(rule, checked, schema, field)
  if (isTransition(rule) || old === undefined || !isEqual(value, old)) return faults
  tolerated.push(...faults)
  return []
}

function brokenBy(rule: ValidationRule, checked: CheckedValue, schema: Schema, field: string): Cause[] {
  const isOptional = rule.optionalOldSelf === true
  const { value } = checked
  const self = checked.self()
  const before = /\boldSelf\b/.test(`${rule.rule} ${rule.messageExpression}`) ? checked.oldSelf() : undefined
  const oldSelf = isOptional ? (before === undefined ? Optional.none() : Optional.of(before)) : before
  const text = rule.message?.trim() || `failed rule: ${rule.rule.trim()}`
  try {
    if (compileCel(rule.rule, schema, isOptional, 'bool')({ self, oldSelf }) === true) return []
  } catch (error) {
    return [
      fieldInvalid(
        field,
        isObject(value) ? 'object' : isList(value) ? 'array' : value,
        `${reasonOf(error)} evaluating rule: ${text}`,
      ),
    ]
  }
  return [
    causeOf(
      rule,
      value,
      field + (rule.fieldPath ?? ''),
      ownMessage(rule, schema, isOptional, { self, oldSelf }) ?? text,
    ),
  ]
}

const reasonOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split('\n')[0] ?? '').replace(/^No such key/, 'no such key') : String(error)

function ownMessage(
  rule: ValidationRule,
  schema: Schema,
  isOptional: boolean,
  variables: { readonly self: unknown; readonly oldSelf: unknown },
): string | undefined {
  if (rule.messageExpression === undefined) return undefined
  try {
    const message = compileCel(rule.messageExpression, schema, isOptional, 'string')(variables)
    return typeof message === 'string' && message.trim() !== '' && !message.includes('\n') ? message : undefined
  } catch {
    return undefined // undefined selects the message of the rule, as in Kubernetes
  }
}

function causeOf(rule: ValidationRule, value: Json, field: string, detail: string): Cause {
  const path = field.replace(/^\./, '') || '<nil>'
  if (rule.reason === 'FieldValueForbidden') return fieldForbidden(path, detail)
  if (rule.reason === 'FieldValueRequired') return fieldRequired(path, detail)
  if (rule.reason === 'FieldValueDuplicate') return fieldDuplicate(path, value)
  // Objects and lists are too long to show.
  return isObject(value) || isList(value)
    ? { reason: 'FieldValueInvalid', message: `Invalid value: ${detail}`, field: path }
    : fieldInvalid(path, value, detail)
}
