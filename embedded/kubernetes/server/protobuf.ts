/** Converts protobuf bodies, which Go clients send for built-in kinds, to JSON. */
import { BinaryReader } from '@bufbuild/protobuf/wire'
import { asList, asObject, asString, setMember, type Json, type JsonObject, type MutableObject } from '../core/json.ts'
import { badRequest, Refusal, unsupportedMediaType } from '../core/status.ts'
import { fieldsOfMessage, messageOf, type Field } from '../core/builtin-schema.ts'

export const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const MAGIC = Buffer.from('k8s\0')

/** Decodes the envelope `runtime.Unknown` and the object in it. Throws for unknown kinds. */
export function jsonFromProtobuf(bytes: Buffer): string {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC))
    throw badRequest('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]')
  try {
    const { typeMeta, raw } = asObject(decode(bytes.subarray(MAGIC.length), 'Unknown'))
    const { apiVersion, kind } = asObject(typeMeta)
    // The options of a deletion have the version of the deleted object.
    const message = kind === 'DeleteOptions' ? kind : messageOf(asString(apiVersion), asString(kind))
    if (message === undefined) throw unsupportedMediaType('application/json, application/yaml')
    return JSON.stringify({ ...asObject(decode(Buffer.from(asString(raw), 'base64'), message)), apiVersion, kind })
  } catch (error) {
    throw error instanceof Refusal ? error : badRequest('the protobuf message is damaged')
  }
}

function decode(bytes: Uint8Array, message: string): Json {
  const value = decodeFields(bytes, fieldsOfMessage(message))
  const special = SPECIAL[message]
  return special ? special(value) : value
}

/** Throws an Error when the bytes are not such a message. */
function decodeFields(bytes: Uint8Array, fields: readonly Field[]): JsonObject {
  const reader = new BinaryReader(bytes)
  const value: MutableObject = {}
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag()
    const field = fields.find((one) => one.number === number)
    if (field) take(reader, field, value)
    else reader.skip(wireType, number)
  }
  return value
}

function take(reader: BinaryReader, { name, type, shape }: Field, value: MutableObject): void {
  if (shape === 'map') {
    const entry = decodeFields(reader.bytes(), [
      { number: 1, name: 'key', type: 'string', shape: 'one' },
      { number: 2, name: 'value', type, shape: 'one' },
    ])
    const map = { ...asObject(value[name]) }
    setMember(map, asString(entry.key), entry.value ?? '')
    value[name] = map
    return
  }
  const one = scalar(reader, type)
  if (shape === 'list') value[name] = [...asList(value[name]), one]
  // Go writes every field that is not a pointer, even if it is empty; JSON omits empty ones.
  else if (one !== '' && one !== null) value[name] = one
}

function scalar(reader: BinaryReader, type: string): Json {
  switch (type) {
    case 'string':
      return reader.string()
    case 'int':
      return Number(reader.int64())
    case 'bool':
      return reader.bool()
    case 'bytes':
      return Buffer.from(reader.bytes()).toString('base64')
    default:
      return decode(reader.bytes(), type)
  }
}

function timeOf({ seconds = 0, nanoseconds = 0 }: JsonObject, digits: number): Json {
  if (seconds === 0 && nanoseconds === 0) return null
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, 19)
  return digits === 0 ? `${whole}Z` : `${whole}.${String(nanoseconds).padStart(9, '0').slice(0, digits)}Z`
}

/** Messages whose JSON is not an object with their fields. */
const SPECIAL: Readonly<Record<string, (fields: JsonObject) => Json>> = {
  Time: (fields) => timeOf(fields, 0),
  MicroTime: (fields) => timeOf(fields, 6),
  IntOrString: ({ isText = 0, number = 0, text = '' }) => (isText === 0 ? number : text),
  // JSON.parse returns JSON
  FieldsV1: ({ raw }) => JSON.parse(Buffer.from(asString(raw), 'base64').toString() || '{}') as Json,
  ExtraValue: ({ items = [] }) => items,
}
