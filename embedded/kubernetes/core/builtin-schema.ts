/** Schemas of built-in kinds, derived from their protobuf fields: members and their types. */
import type { Schema } from '../schema/schema.ts'
import { KINDS, MESSAGES } from './builtin-fields.ts'

export interface Field {
  readonly number: number
  readonly name: string
  readonly type: string
  readonly shape: 'one' | 'list' | 'map'
}

const parsed = new Map<string, readonly Field[]>()

/** The fields of a message, in the order of their numbers. */
export function fieldsOfMessage(message: string): readonly Field[] {
  let fields = parsed.get(message)
  if (!fields) {
    fields = (MESSAGES[message] ?? '')
      .split(', ')
      .filter((line) => line !== '')
      .map((line) => {
        const [number = '', name = '', type = ''] = line.split(' ')
        const shape = type.endsWith('[]') ? 'list' : type.startsWith('{') ? 'map' : 'one'
        return { number: Number(number), name, type: type.replace(/\[\]$|[{}]/g, ''), shape }
      })
    parsed.set(message, fields)
  }
  return fields
}

const SCALARS: Readonly<Record<string, Schema>> = {
  string: { type: 'string' },
  int: { type: 'integer', format: 'int64' },
  bool: { type: 'boolean' },
  bytes: { type: 'string', format: 'byte' },
  Time: { type: 'string', format: 'date-time' },
  MicroTime: { type: 'string', format: 'date-time' },
  IntOrString: { 'x-kubernetes-int-or-string': true },
  FieldsV1: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  ExtraValue: { type: 'array', items: { type: 'string' } },
}

const known = new Map<string, Schema>()

function schemaOf(message: string): Schema {
  let schema = known.get(message)
  if (!schema) {
    const properties = fieldsOfMessage(message).map(({ name, type, shape }): readonly [string, Schema] => {
      const one = SCALARS[type] ?? schemaOf(type)
      return [
        name,
        shape === 'list'
          ? { type: 'array', items: one }
          : shape === 'map'
            ? { type: 'object', additionalProperties: one }
            : one,
      ]
    })
    known.set(message, (schema = { type: 'object', properties: Object.fromEntries(properties) }))
  }
  return schema
}

/** The message of a kind; undefined when its fields are not listed here. */
export const messageOf = (apiVersion: string, kind: string): string | undefined => KINDS[`${apiVersion}/${kind}`]

/** All members of objects of the kind, besides type and metadata. */
export function builtInSchema(apiVersion: string, kind: string): Schema | undefined {
  const message = messageOf(apiVersion, kind)
  return message === undefined ? undefined : schemaOf(message)
}
