/** Bodies that clients in Go send for built-in kinds: protobuf into the JSON that it stands for. */
import type { Json, MutableObject } from '../core/json.ts'
import { badRequest, unsupportedMediaType } from '../core/status.ts'
import { fieldsOfMessage, isInline, messageOf } from '../core/builtin-schema.ts'

export const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const MAGIC = Buffer.from('k8s\0')
const DEPTH_MOST = 64

/** The envelope `runtime.Unknown` and the object inside. Throws for kinds that are not known. */
export function jsonFromProtobuf(bytes: Buffer): string {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw badRequest('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]')
  try {
    const envelope = fieldsIn(bytes.subarray(MAGIC.length))
    const type = fieldsIn(bytesOf(envelope.get(1)?.[0]))
    const apiVersion = textOf(type.get(1)?.[0])
    const kind = textOf(type.get(2)?.[0])
    // Options of deletions are sent in the version of what they delete.
    const message = messageOf(apiVersion, kind) ?? (kind === 'DeleteOptions' ? 'DeleteOptions' : undefined)
    if (message === undefined) throw unsupportedMediaType('application/json, application/yaml')
    return JSON.stringify({ ...(decode(bytesOf(envelope.get(2)?.[0]), message, 0) as object), apiVersion, kind })
  } catch (error) {
    if (error instanceof RangeError) throw badRequest('the protobuf message is damaged')
    throw error
  }
}

type Wire = Buffer | bigint
const bytesOf = (value: Wire | undefined): Buffer => (Buffer.isBuffer(value) ? value : Buffer.alloc(0))
const textOf = (value: Wire | undefined): string => bytesOf(value).toString('utf8')
const numberOf = (value: Wire | undefined): number => Number(BigInt.asIntN(64, typeof value === 'bigint' ? value : 0n))

/** The raw values by field number. Throws a RangeError when the bytes end early. */
function fieldsIn(bytes: Buffer): Map<number, Wire[]> {
  const fields = new Map<number, Wire[]>()
  let position = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes.readUInt8(position++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw new RangeError('a number is too long')
  }
  const take = (length: number): Buffer => {
    if (position + length > bytes.length) throw new RangeError('the message ends early')
    return bytes.subarray(position, (position += length))
  }
  while (position < bytes.length) {
    const tag = Number(varint())
    const wireType = tag & 7
    const value = wireType === 0 ? varint() : wireType === 1 ? take(8) : wireType === 2 ? take(Number(varint())) : wireType === 5 ? take(4) : undefined
    if (value === undefined) throw new RangeError('an unknown wire type')
    const known = fields.get(tag >>> 3)
    if (known) known.push(value)
    else fields.set(tag >>> 3, [value])
  }
  return fields
}

function decode(bytes: Buffer, message: string, depth: number): Json {
  if (depth > DEPTH_MOST) throw new RangeError('the message is too deep')
  const special = SPECIAL[message]
  if (special) return special(bytes)
  const raw = fieldsIn(bytes)
  const value: MutableObject = {}
  for (const { number, name, type, shape } of fieldsOfMessage(message)) {
    const values = raw.get(number)
    if (!values) continue
    if (shape === 'list') value[name] = values.map((one) => scalar(one, type, depth))
    else if (shape === 'map') value[name] = Object.fromEntries(values.map((entry) => mapEntry(bytesOf(entry), type, depth)))
    else {
      const one = scalar(values.at(-1), type, depth)
      if (isInline(message, name)) Object.assign(value, one)
      else if (!isEmptyDefault(one)) value[name] = one
    }
  }
  return value
}

/** Go writes every field that is no pointer, empty or not; JSON leaves the empty ones out. */
const isEmptyDefault = (value: Json): boolean => value === '' || value === null

function mapEntry(bytes: Buffer, type: string, depth: number): readonly [string, Json] {
  const entry = fieldsIn(bytes)
  return [textOf(entry.get(1)?.[0]), scalar(entry.get(2)?.[0] ?? Buffer.alloc(0), type, depth)]
}

function scalar(value: Wire | undefined, type: string, depth: number): Json {
  switch (type) {
    case 'string':
      return textOf(value)
    case 'int':
      return numberOf(value)
    case 'bool':
      return value === 1n
    case 'bytes':
      return bytesOf(value).toString('base64')
    case 'double':
      return bytesOf(value).readDoubleLE(0)
    default:
      return decode(bytesOf(value), type, depth + 1)
  }
}

function timeOf(bytes: Buffer, digits: number): Json {
  const fields = fieldsIn(bytes)
  const seconds = numberOf(fields.get(1)?.[0])
  const nanoseconds = numberOf(fields.get(2)?.[0])
  if (bytes.length === 0) return null
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19)
  return digits === 0 ? `${whole}Z` : `${whole}.${String(nanoseconds).padStart(9, '0').slice(0, digits)}Z`
}

/** Types whose JSON is not an object with their fields. */
const SPECIAL: Readonly<Record<string, (bytes: Buffer) => Json>> = {
  Time: (bytes) => timeOf(bytes, 0),
  MicroTime: (bytes) => timeOf(bytes, 6),
  Quantity: (bytes) => textOf(fieldsIn(bytes).get(1)?.[0]),
  IntOrString: (bytes) => {
    const fields = fieldsIn(bytes)
    return numberOf(fields.get(1)?.[0]) === 0 ? numberOf(fields.get(2)?.[0]) : textOf(fields.get(3)?.[0])
  },
  Duration: (bytes) => `${numberOf(fieldsIn(bytes).get(1)?.[0]) / 1e9}s`,
  FieldsV1: (bytes) => JSON.parse(textOf(fieldsIn(bytes).get(1)?.[0]) || '{}') as Json,
  RawExtension: (bytes) => JSON.parse(textOf(fieldsIn(bytes).get(1)?.[0]) || 'null') as Json,
}
