/** The documents that clients send: the elements that each may contain, how many, and the names that they may have. An
 *  element that is not listed here would be overlooked by some reader, so it is refused. Pure. */
import { checkKey } from './names.ts'
import { invalidArgument, malformedXml, notOffered, S3Refusal } from './refusal.ts'
import { type Element, readXml } from './xml.ts'

interface Shape {
  /** Occurrences of the element within its parent. */
  readonly minimum?: number
  readonly maximum?: number
  readonly children?: Readonly<Record<string, Shape>>
  /** Pattern of the text; any text without it. Surrounding space is ignored unless `isExact`. */
  readonly pattern?: RegExp
  readonly isExact?: true
}

const one: Shape = { maximum: 1 }
const needed: Shape = { minimum: 1, maximum: 1 }
const many = (maximum: number, children?: Readonly<Record<string, Shape>>): Shape => ({
  maximum,
  ...(children && { children }),
})
const TAG: Shape = many(1_000, { Key: { ...needed, isExact: true }, Value: { ...needed, isExact: true } })
const MODE: Shape = { ...needed, pattern: /^(?:GOVERNANCE|COMPLIANCE)$/ }
const NUMBER: Shape = { ...one, pattern: /^\d{1,6}$/ }

const CHECKSUMS: Readonly<Record<string, Shape>> = Object.fromEntries(
  ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256', 'SHA512', 'MD5', 'XXHASH3', 'XXHASH64', 'XXHASH128'].map(
    (name) => [`Checksum${name}`, one],
  ),
)
const SMALL_BYTES_MAXIMUM = 20 * 1024
const LARGE_BYTES_MAXIMUM = 2 * 1024 * 1024
const KEYS_MAXIMUM = 1_000
const PARTS_MAXIMUM = 10_000

interface Document {
  readonly bytesMaximum: number
  /** Undefined for a document whose content is ignored. */
  readonly children?: Readonly<Record<string, Shape>>
  /** A request without a body is valid too. */
  readonly isOptional?: true
}

export const DOCUMENTS = {
  Delete: {
    bytesMaximum: LARGE_BYTES_MAXIMUM,
    children: {
      Object: {
        ...many(KEYS_MAXIMUM, {
          Key: { ...needed, isExact: true },
          VersionId: { ...one, pattern: /^(?!\.+$)[0-9A-Za-z._-]{1,64}$/, isExact: true },
        }),
        minimum: 1,
      },
      Quiet: { ...one, pattern: /^(?:true|false)$/ },
    },
  },
  CompleteMultipartUpload: {
    bytesMaximum: LARGE_BYTES_MAXIMUM,
    children: {
      Part: {
        ...many(PARTS_MAXIMUM, { PartNumber: { ...needed, pattern: /^[1-9]\d{0,4}$/ }, ETag: needed, ...CHECKSUMS }),
        minimum: 1,
      },
    },
  },
  Tagging: { bytesMaximum: SMALL_BYTES_MAXIMUM, children: { TagSet: { ...needed, children: { Tag: TAG } } } },
  Retention: { bytesMaximum: SMALL_BYTES_MAXIMUM, children: { Mode: MODE, RetainUntilDate: needed } },
  LegalHold: { bytesMaximum: SMALL_BYTES_MAXIMUM, children: { Status: { ...needed, pattern: /^(?:ON|OFF)$/ } } },
  VersioningConfiguration: {
    bytesMaximum: SMALL_BYTES_MAXIMUM,
    children: {
      Status: { ...needed, pattern: /^(?:Enabled|Suspended)$/ },
      MfaDelete: { ...one, pattern: /^Disabled$/ },
    },
  },
  ObjectLockConfiguration: {
    bytesMaximum: SMALL_BYTES_MAXIMUM,
    children: {
      ObjectLockEnabled: { ...one, pattern: /^Enabled$/ },
      Rule: {
        ...one,
        children: { DefaultRetention: { ...needed, children: { Mode: MODE, Days: NUMBER, Years: NUMBER } } },
      },
    },
  },
  CORSConfiguration: {
    bytesMaximum: 64 * 1024,
    children: {
      CORSRule: {
        ...many(100, {
          ID: one,
          AllowedOrigin: many(100),
          AllowedMethod: many(100),
          AllowedHeader: many(100),
          ExposeHeader: many(100),
          MaxAgeSeconds: { ...one, pattern: /^-?\d{1,9}$/ },
        }),
        minimum: 1,
      },
    },
  },
  CreateBucketConfiguration: {
    bytesMaximum: SMALL_BYTES_MAXIMUM,
    isOptional: true,
    children: {
      LocationConstraint: { ...one, pattern: /^[A-Za-z0-9-]{0,64}$/ },
      Tags: { ...one, children: { Tag: TAG } },
    },
  },
  LifecycleConfiguration: { bytesMaximum: 1024 * 1024 },
} as const satisfies Record<string, Document>

export type DocumentName = keyof typeof DOCUMENTS

/** What a document says about objects. */
export interface ReadDocument {
  /** Of DeleteObjects. */
  readonly keys: readonly string[]
  /** Of CreateBucket. */
  readonly location: string | undefined
}

export const documentBytesMaximum = (name: DocumentName): number => DOCUMENTS[name].bytesMaximum

/** Throws the Refusal for anything but a document of this name. */
export function readDocument(name: DocumentName, bytes: Uint8Array): ReadDocument {
  const document: Document = DOCUMENTS[name]
  if (bytes.length > document.bytesMaximum)
    throw new S3Refusal(
      400,
      'MaxMessageLengthExceeded',
      `Your request was too big: it may have ${document.bytesMaximum} bytes.`,
    )
  if (document.children === undefined) return { keys: [], location: undefined }
  if (bytes.length === 0) {
    if (document.isOptional) return { keys: [], location: undefined }
    throw new S3Refusal(400, 'MissingRequestBodyError', 'Request Body is empty.')
  }
  const root = readXml(bytes)
  if (root.name !== name) throw malformedXml(`The document is ${name}.`)
  checkChildren(root, document.children)
  const keys = name === 'Delete' ? root.children.filter(({ name: child }) => child === 'Object').map(keyOf) : []
  for (const key of keys) checkKey(key)
  const location = root.children.find(({ name: child }) => child === 'LocationConstraint')?.text.trim()
  return { keys, location }
}

const keyOf = ({ children }: Element): string => children.find(({ name }) => name === 'Key')?.text ?? ''

function checkChildren({ name, children, text }: Element, shapes: Readonly<Record<string, Shape>>): void {
  if (text.trim() !== '') throw malformedXml(`${name} has no text.`)
  const counts = new Map<string, number>()
  for (const child of children) {
    const shape = Object.hasOwn(shapes, child.name) ? shapes[child.name] : undefined
    if (shape === undefined) throw malformedXml(`${name} has no ${child.name} here.`)
    const count = (counts.get(child.name) ?? 0) + 1
    counts.set(child.name, count)
    if (count > (shape.maximum ?? 1)) throw malformedXml(`${name} has more of ${child.name} than it may have.`)
    if (shape.children !== undefined) checkChildren(child, shape.children)
    else checkText(child, shape)
  }
  for (const [child, { minimum = 0 }] of Object.entries(shapes))
    if ((counts.get(child) ?? 0) < minimum) throw malformedXml(`${name} lacks ${child}.`)
}

function checkText({ name, children, text }: Element, { pattern, isExact }: Shape): void {
  if (children.length > 0) throw malformedXml(`${name} has no elements.`)
  const value = isExact ? text : text.trim()
  if (pattern === undefined || pattern.test(value)) return
  if (name === 'MfaDelete') throw notOffered('MFA delete')
  throw name === 'VersionId'
    ? invalidArgument('Invalid version id specified')
    : malformedXml(`${name} has another form.`)
}
