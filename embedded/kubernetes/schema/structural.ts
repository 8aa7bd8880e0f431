/** Validates the schemas, columns and subresources of a CustomResourceDefinition. */
import { compileJsonPath } from '../core/jsonpath.ts'
import { asList, asString, at, isObject, type Json } from '../core/json.ts'
import type { KubeObject } from '../core/object.ts'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired, type Cause } from '../core/status.ts'
import { compileCel, WrongResult } from './cel.ts'
import type { ValidationRule, Schema } from './schema.ts'
import { compilePattern, schemaFaults } from './validate.ts'

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string']
const COLUMN_TYPES = ['integer', 'number', 'string', 'boolean', 'date']

export function definitionFaults(crd: KubeObject): Cause[] {
  return asList(at(crd, 'spec', 'versions')).flatMap((version, index, all) =>
    versionFaults(version, `spec.versions[${index}]`, all.length === 1),
  )
}

function versionFaults(version: Json, field: string, isOnly: boolean): Cause[] {
  const schema = at(version, 'schema', 'openAPIV3Schema')
  if (!isObject(schema)) return [fieldRequired(`${field}.schema.openAPIV3Schema`)]
  // With a single version, faults name the field for the schema of all versions.
  const schemaField = isOnly ? 'spec.validation.openAPIV3Schema' : `${field}.schema.openAPIV3Schema`
  return [
    ...(asString(at(version, 'name')) === '' ? [fieldRequired(`${field}.name`)] : []),
    ...(schema.type === 'object'
      ? []
      : [fieldInvalid(`${schemaField}.type`, schema.type ?? '', 'must be object at the root')]),
    ...structuralFaults(schema as Schema, schemaField), // validated below
    ...asList(at(version, 'additionalPrinterColumns')).flatMap((column, index) =>
      columnFaults(column, `${field}.additionalPrinterColumns[${index}]`),
    ),
    ...asList(at(version, 'selectableFields')).flatMap((selectable, index) =>
      pathFaults(at(selectable, 'jsonPath'), `${field}.selectableFields[${index}].jsonPath`),
    ),
  ]
}

function columnFaults(column: Json, field: string): Cause[] {
  const type = at(column, 'type')
  return [
    ...(asString(at(column, 'name')) === '' ? [fieldRequired(`${field}.name`)] : []),
    ...(COLUMN_TYPES.includes(asString(type)) ? [] : [fieldNotSupported(`${field}.type`, type, COLUMN_TYPES)]),
    ...pathFaults(at(column, 'jsonPath'), `${field}.jsonPath`),
  ]
}

function pathFaults(path: Json | undefined, field: string): Cause[] {
  if (asString(path) === '') return [fieldRequired(field)]
  try {
    compileJsonPath(asString(path))
    return []
  } catch (error) {
    return [fieldInvalid(field, path, error instanceof Error ? error.message : String(error))]
  }
}

function structuralFaults(schema: Schema, field: string): Cause[] {
  if ('$ref' in schema) return [fieldForbidden(`${field}.$ref`, '$ref is not supported')]
  const faults: Cause[] = junctorFaults(schema, field)
  const isOpen =
    schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true
  if (schema.type === undefined && !isOpen)
    faults.push(fieldRequired(`${field}.type`, 'must not be empty for specified object fields'))
  if (schema.type !== undefined && !TYPES.includes(schema.type))
    faults.push(fieldNotSupported(`${field}.type`, schema.type, TYPES))
  if (schema.type === 'array' && !schema.items) faults.push(fieldRequired(`${field}.items`, 'must be specified'))
  if (schema.properties && schema.additionalProperties !== undefined && schema.additionalProperties !== false)
    faults.push(
      fieldForbidden(`${field}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'),
    )
  if (schema.additionalProperties === false)
    faults.push(fieldForbidden(`${field}.additionalProperties`, 'additionalProperties cannot be set to false'))
  if (schema.uniqueItems)
    faults.push(
      fieldForbidden(
        `${field}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    )
  if (schema['x-kubernetes-list-type'] === 'map' && (schema['x-kubernetes-list-map-keys'] ?? []).length === 0)
    faults.push(
      fieldRequired(`${field}.x-kubernetes-list-map-keys`, 'must not be empty if x-kubernetes-list-type is map'),
    )
  if (schema['x-kubernetes-list-type'] === 'map') faults.push(...keyFaults(schema, field))
  if (schema.pattern !== undefined) faults.push(...patternFaults(schema.pattern, `${field}.pattern`))
  for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries())
    faults.push(...ruleDefinitionFaults(rule, schema, `${field}.x-kubernetes-validations[${index}]`))
  if (schema.default !== undefined)
    faults.push(
      ...schemaFaults(schema.default, schema).map((fault) => ({
        ...fault,
        field: [`${field}.default`, fault.field].filter((part) => part !== '').join('.'),
      })),
    )
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    if (field.endsWith('openAPIV3Schema') && ['apiVersion', 'kind', 'metadata'].includes(key)) continue
    faults.push(...structuralFaults(member, `${field}.properties[${key}]`))
  }
  if (schema.items) faults.push(...structuralFaults(schema.items, `${field}.items`))
  if (typeof schema.additionalProperties === 'object')
    faults.push(...structuralFaults(schema.additionalProperties, `${field}.additionalProperties`))
  return faults
}

/** Members that identify items must always exist. */
const keyFaults = ({ items, 'x-kubernetes-list-map-keys': keys = [] }: Schema, field: string): Cause[] =>
  keys
    .filter((key) => items?.properties?.[key]?.default === undefined && !items?.required?.includes(key))
    .map((key) =>
      fieldRequired(
        `${field}.items.properties[${key}].default`,
        'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
      ),
    )

/** Alternatives may only restrict the schema itself. */
function junctorFaults(schema: Schema, field: string): Cause[] {
  const { allOf = [], anyOf = [], oneOf = [], not } = schema
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true
  const below = [
    ...allOf.map((one, index) => ({ one, at: `allOf[${index}]` })),
    ...(isIntOrString ? [] : anyOf.map((one, index) => ({ one, at: `anyOf[${index}]` }))),
    ...oneOf.map((one, index) => ({ one, at: `oneOf[${index}]` })),
    ...(not ? [{ one: not, at: 'not' }] : []),
  ]
  return below.flatMap(({ one, at: place }) =>
    (['type', 'default', 'description', 'nullable'] as const)
      .filter((key) => one[key] !== undefined)
      .map((key) => fieldForbidden(`${field}.${place}.${key}`, 'must be empty to be structural')),
  )
}

/** A rule must compile, use only known functions and fields, and return a boolean. */
function ruleDefinitionFaults(rule: ValidationRule, schema: Schema, field: string): Cause[] {
  const compiles = (member: 'rule' | 'messageExpression', result: 'bool' | 'string'): Cause[] => {
    const expression = rule[member]
    if (expression === undefined) return member === 'rule' ? [fieldRequired(`${field}.rule`)] : []
    try {
      compileCel(expression, schema, rule.optionalOldSelf === true, result)
      return []
    } catch (error) {
      const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
      const shown = {
        Rule: rule.rule,
        Message: rule.message ?? '',
        MessageExpression: rule.messageExpression ?? '',
        Reason: rule.reason ?? null,
        FieldPath: rule.fieldPath ?? '',
        OptionalOldSelf: rule.optionalOldSelf ?? null,
      }
      return [
        fieldInvalid(
          `${field}.${member}`,
          shown,
          error instanceof WrongResult ? text : `compilation failed: ERROR: ${text}`,
        ),
      ]
    }
  }
  return [...compiles('rule', 'bool'), ...compiles('messageExpression', 'string')]
}

function patternFaults(pattern: string, field: string): Cause[] {
  try {
    compilePattern(pattern)
    return []
  } catch (error) {
    return [
      fieldInvalid(
        field,
        pattern,
        `must be a valid regular expression, but isn't: ${error instanceof Error ? error.message : String(error)}`,
      ),
    ]
  }
}
