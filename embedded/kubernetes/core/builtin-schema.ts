/** Schemas of built-in kinds, made from their protobuf fields: which members exist, and of which type. */
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
    fields = (MESSAGES[message] ?? '').split(', ').filter((line) => line !== '').map((line) => {
      const [number = '', name = '', type = ''] = line.split(' ')
      const shape = type.endsWith('[]') ? 'list' : type.startsWith('{') ? 'map' : 'one'
      return { number: Number(number), name, type: type.replace(/\[\]$|[{}]/g, ''), shape }
    })
    parsed.set(message, fields)
  }
  return fields
}

const INLINE: Readonly<Record<string, string>> = { Volume: 'volumeSource', Probe: 'handler', EphemeralContainer: 'ephemeralContainerCommon' }

/** Is the field's message part of its parent in JSON, instead of a member? */
export const isInline = (message: string, name: string): boolean => name === 'localObjectReference' || INLINE[message] === name

const SCALARS: Readonly<Record<string, Schema>> = {
  string: { type: 'string' },
  int: { type: 'integer', format: 'int64' },
  bool: { type: 'boolean' },
  bytes: { type: 'string', format: 'byte' },
  double: { type: 'number', format: 'double' },
  Time: { type: 'string', format: 'date-time' },
  MicroTime: { type: 'string', format: 'date-time' },
  Duration: { type: 'string' },
  Quantity: { 'x-kubernetes-preserve-unknown-fields': true },
  IntOrString: { 'x-kubernetes-int-or-string': true },
  FieldsV1: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  RawExtension: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
}

/** The schema of one message; `nested` answers for the messages inside it. */
export function messageSchema(message: string, nested: (message: string) => Schema): Schema {
  const properties: Record<string, Schema> = {}
  for (const { name, type, shape } of fieldsOfMessage(message)) {
    const one = SCALARS[type] ?? nested(type)
    if (isInline(message, name)) Object.assign(properties, messageSchema(type, nested).properties)
    else properties[name] = shape === 'list' ? { type: 'array', items: one } : shape === 'map' ? { type: 'object', additionalProperties: one } : one
  }
  return { type: 'object', properties }
}

const whole = new Map<string, Schema>()

function wholeSchema(message: string): Schema {
  let schema = whole.get(message)
  if (!schema) whole.set(message, (schema = messageSchema(message, wholeSchema)))
  return schema
}

/** The message of a kind; undefined when its fields are not known here. */
export const messageOf = (apiVersion: string, kind: string): string | undefined => KINDS[`${apiVersion}/${kind}`]

/** Everything that objects of the kind may hold besides type and metadata. */
export function builtInSchema(apiVersion: string, kind: string): Schema | undefined {
  const message = messageOf(apiVersion, kind)
  return message === undefined ? undefined : wholeSchema(message)
}
