/** Validates a value against a structural schema. Returns every fault with the field, the reason and the message of
 *  Kubernetes. Unchanged parts of `old` are not validated again. CEL rules are not evaluated here. */
import { asObject, isEqual, isList, isObject, type Json, type JsonObject } from '../core/json.ts'
import {
  fieldDuplicate,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  fieldTooLong,
  fieldTooMany,
  fieldTypeInvalid,
  type Cause,
} from '../core/status.ts'
import { isOfFormat } from './formats.ts'
import { formerItem, memberSchema, type Schema } from './schema.ts'

/** Every fault, with the messages of Kubernetes. Unchanged parts of `old` are not validated again. */
export function schemaFaults(value: Json, schema: Schema, field = '', old?: Json): Cause[] {
  if (value === null && schema.nullable) return []
  // a stored value is not refused because the schema has changed
  if (old !== undefined && isEqual(value, old)) return []
  const typeFault = typeFaultOf(value, schema, field)
  if (typeFault)
    return typeof value === 'number' && schema.type === 'integer' && schema.format === 'int32'
      ? [uncheckedNumber(field), typeFault]
      : [typeFault]
  return [
    ...(schema.enum && !schema.enum.some((allowed) => isEqual(allowed, value))
      ? [fieldNotSupported(field, value, schema.enum)]
      : []),
    ...(typeof value === 'string' ? stringFaults(value, schema, field) : []),
    ...(typeof value === 'number' ? numberFaults(value, schema, field) : []),
    ...(isList(value) ? listFaults(value, schema, field, old) : []),
    ...(isObject(value) ? objectFaults(value, schema, field, old) : []),
    ...junctorFaults(value, schema, field),
  ]
}

function typeFaultOf(value: Json, schema: Schema, field: string): Cause | undefined {
  if (schema['x-kubernetes-int-or-string']) {
    return typeof value === 'string' || Number.isInteger(value)
      ? undefined
      : fieldTypeInvalid(
          field,
          typeOf(value),
          `${field} in body must be of type integer,string: ${JSON.stringify(typeOf(value))}`,
        )
  }
  const { type } = schema
  if (type === undefined) return undefined
  const actual = typeOf(value)
  if (actual === type || (type === 'number' && actual === 'integer')) return undefined
  if (type === 'integer' && actual === 'number')
    return fieldTypeInvalid(
      field,
      'float64',
      `${field} in body must be of type ${schema.format ?? 'integer'}: "float64"`,
    )
  return fieldTypeInvalid(
    field,
    typeOf(value),
    `${field} in body must be of type ${type}: ${JSON.stringify(typeOf(value))}`,
  )
}

/** The additional fault of the real server for a fractional value of an integer type. */
const uncheckedNumber = (field: string): Cause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: "": Checked value must be of type integer with format int32 in ${field}`,
  field: '<nil>',
})

const typeOf = (value: Json): string =>
  value === null
    ? 'null'
    : isList(value)
      ? 'array'
      : typeof value === 'number'
        ? Number.isInteger(value)
          ? 'integer'
          : 'number'
        : typeof value

function stringFaults(value: string, schema: Schema, field: string): Cause[] {
  const length = schema.maxLength === undefined && schema.minLength === undefined ? 0 : [...value].length
  const { maxLength, minLength, pattern, format } = schema
  return [
    ...(maxLength !== undefined && length > maxLength ? [fieldTooLong(field, maxLength)] : []),
    ...(minLength !== undefined && length < minLength
      ? [fieldInvalid(field, value, `${field} in body should be at least ${minLength} chars long`)]
      : []),
    ...(pattern !== undefined && !patternOf(pattern).test(value)
      ? [fieldInvalid(field, value, `${field} in body should match '${pattern}'`)]
      : []),
    ...(format !== undefined && !isOfFormat(value, format)
      ? [fieldTypeInvalid(field, value, `${field} in body must be of type ${format}: ${JSON.stringify(value)}`)]
      : []),
  ]
}

const patterns = new Map<string, RegExp>()
const PATTERNS_MOST = 10_000

function patternOf(pattern: string): RegExp {
  let found = patterns.get(pattern)
  if (!found) {
    found = compilePattern(pattern)
    if (patterns.size < PATTERNS_MOST) patterns.set(pattern, found)
  }
  return found
}

/** RE2 has no lookaround and no back references; everything else has the same meaning here. Throws for an invalid
 *  pattern. */
export function compilePattern(pattern: string): RegExp {
  const foreign = /\(\?(?:[=!]|<[=!])/.exec(pattern)?.[0]
  if (foreign !== undefined)
    throw new SyntaxError(`error parsing regexp: invalid or unsupported Perl syntax: \`${foreign}\``)
  if (/\\[1-9]/.test(pattern))
    throw new SyntaxError(`error parsing regexp: invalid escape sequence: \`${/\\[1-9]/.exec(pattern)?.[0] ?? ''}\``)
  const flags = pattern.startsWith('(?i)') ? 'iu' : 'u'
  const body = pattern
    .replace(/^\(\?i\)/, '')
    .replaceAll('(?P<', '(?<')
    .replaceAll('\\A', '^')
    .replaceAll('\\z', '$')
  try {
    return new RegExp(body, flags)
  } catch {
    return new RegExp(body, flags.replace('u', '')) // for escapes that only the older syntax allows
  }
}

function numberFaults(value: number, schema: Schema, field: string): Cause[] {
  const { minimum, maximum, multipleOf, format } = schema
  const faults: Cause[] = []
  if (minimum !== undefined && (schema.exclusiveMinimum ? value <= minimum : value < minimum)) {
    faults.push(
      fieldInvalid(
        field,
        value,
        `${field} in body should be greater than ${schema.exclusiveMinimum ? '' : 'or equal to '}${minimum}`,
      ),
    )
  }
  if (maximum !== undefined && (schema.exclusiveMaximum ? value >= maximum : value > maximum)) {
    faults.push(
      fieldInvalid(
        field,
        value,
        `${field} in body should be less than ${schema.exclusiveMaximum ? '' : 'or equal to '}${maximum}`,
      ),
    )
  }
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf))
    faults.push(fieldInvalid(field, value, `${field} in body should be a multiple of ${multipleOf}`))
  if (format === 'int32' && (value < -(2 ** 31) || value >= 2 ** 31))
    faults.push(fieldInvalid(field, value, `Checked value must be of type integer with format int32 in ${field}`))
  return faults
}

function listFaults(value: readonly Json[], schema: Schema, field: string, old: Json | undefined): Cause[] {
  const { minItems, maxItems, items } = schema
  return [
    ...(maxItems !== undefined && value.length > maxItems ? [fieldTooMany(field, value.length, maxItems)] : []),
    ...(minItems !== undefined && value.length < minItems
      ? [fieldInvalid(field, value.length, `${field} in body should have at least ${minItems} items`)]
      : []),
    ...duplicateFaults(value, schema, field),
    ...(items
      ? value.flatMap((item, index) => schemaFaults(item, items, `${field}[${index}]`, formerItem(item, old, schema)))
      : []),
  ]
}

function duplicateFaults(value: readonly Json[], schema: Schema, field: string): Cause[] {
  const listType = schema['x-kubernetes-list-type']
  if (listType !== 'set' && listType !== 'map') return []
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const texts = new Set<string>()
  return value.flatMap((item, index) => {
    const identity = listType === 'set' ? item : Object.fromEntries(keys.map((key) => [key, asObject(item)[key]]))
    const text = JSON.stringify(identity)
    if (!texts.has(text)) {
      texts.add(text)
      return []
    }
    return [fieldDuplicate(`${field}[${index}]`, identity)]
  })
}

function objectFaults(value: JsonObject, schema: Schema, field: string, old: Json | undefined): Cause[] {
  const count = Object.keys(value).length
  const { minProperties, maxProperties, required = [] } = schema
  const inner = (key: string) => (field === '' ? key : `${field}.${key}`)
  return [
    ...(maxProperties !== undefined && count > maxProperties ? [fieldTooMany(field, count, maxProperties)] : []),
    ...(minProperties !== undefined && count < minProperties
      ? [fieldInvalid(field, count, `${field} in body should have at least ${minProperties} properties`)]
      : []),
    ...required
      .filter((key) => !Object.hasOwn(value, key) || value[key] === undefined)
      .map((key) => fieldRequired(inner(key))),
    ...Object.entries(value).flatMap(([key, member]) => {
      const known = memberSchema(schema, key)
      return known && member !== undefined
        ? schemaFaults(member, known, inner(key), isObject(old) ? old[key] : undefined)
        : []
    }),
    ...(schema['x-kubernetes-embedded-resource'] ? embeddedFaults(value, field) : []),
  ]
}

const embeddedFaults = (value: JsonObject, field: string): Cause[] =>
  (['apiVersion', 'kind'] as const)
    .filter((key) => typeof value[key] !== 'string' || value[key] === '')
    .map((key) => fieldRequired(`${field}.${key}`))

/** A fault of a choice as a whole. */
const unnamed = (text: string): Cause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: "": ${text}`,
  field: '<nil>',
})
/** The faults of the alternative with the fewest faults. */
const nearest = (alternatives: readonly (readonly Cause[])[]): readonly Cause[] =>
  alternatives.reduce<readonly Cause[]>((best, one) => (best.length === 0 || one.length < best.length ? one : best), [])

function junctorFaults(value: Json, schema: Schema, field: string): Cause[] {
  const passes = (candidate: Schema) => schemaFaults(value, candidate, field).length === 0
  const faults: Cause[] = []
  const about = JSON.stringify(field)
  for (const part of schema.allOf ?? []) {
    const inner = schemaFaults(value, part, field)
    if (inner.length > 0) faults.push(...inner)
  }
  if (schema.anyOf && !schema.anyOf.some(passes)) {
    faults.push(
      unnamed(`${about} must validate at least one schema (anyOf)`),
      ...nearest(schema.anyOf.map((one) => schemaFaults(value, one, field))),
    )
  }
  if (schema.oneOf) {
    const passing = schema.oneOf.filter(passes).length
    if (passing !== 1)
      faults.push(
        unnamed(
          `${about} must validate one and only one schema (oneOf). ` +
            `${passing === 0 ? 'Found none valid' : `Found ${passing} valid alternatives`}`,
        ),
      )
    if (passing === 0) faults.push(...nearest(schema.oneOf.map((one) => schemaFaults(value, one, field))))
  }
  if (schema.not && passes(schema.not)) faults.push(unnamed(`${about} must not validate the schema (not)`))
  return faults
}
