/** Structural schemas: the part of JSON schema that CustomResourceDefinitions may use. */
import { asObject, isEqual, isList, type Json, type JsonObject } from '../core/json.ts'

export interface ValidationRule extends JsonObject {
  readonly rule: string
  readonly message?: string
  readonly messageExpression?: string
  readonly reason?: string
  readonly fieldPath?: string
  readonly optionalOldSelf?: boolean
}

/** A type instead of an interface, so that it is assignable to Json. */
export type Schema = {
  readonly type?: string
  readonly description?: string
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly default?: Json
  readonly enum?: readonly Json[]
  readonly nullable?: boolean
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: boolean
  readonly exclusiveMaximum?: boolean
  readonly multipleOf?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly not?: Schema
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-embedded-resource'?: boolean
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: 'granular' | 'atomic'
  readonly 'x-kubernetes-validations'?: readonly ValidationRule[]
}

/** The schema of a member of an object; undefined when the schema does not describe it. */
export function memberSchema(schema: Schema | undefined, key: string): Schema | undefined {
  const named = schema?.properties
  if (named !== undefined && Object.hasOwn(named, key)) return named[key]
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

export const allowsUnknown = (schema: Schema): boolean =>
  schema['x-kubernetes-preserve-unknown-fields'] === true ||
  (schema.additionalProperties !== undefined && schema.additionalProperties !== false)

/** The old state of the same item of a keyed list; items of other lists have no old state. */
export function formerItem(item: Json, old: Json | undefined, schema: Schema): Json | undefined {
  const keys = schema['x-kubernetes-list-map-keys']
  if (schema['x-kubernetes-list-type'] !== 'map' || !keys || !isList(old)) return undefined
  return old.find((one) => keys.every((key) => isEqual(asObject(one)[key], asObject(item)[key])))
}
