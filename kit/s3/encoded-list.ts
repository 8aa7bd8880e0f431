/** Lists whose names are escaped as in URLs, because XML cannot contain all of them: the engine of a single host does
 *  not support that. Pure. */
import { escapeForSignature } from './signature.ts'
import type { S3Operation } from './operation.ts'

const NAMES: Readonly<Record<string, readonly string[]>> = {
  ListObjects: ['Key', 'Prefix', 'Delimiter', 'Marker', 'NextMarker'],
  ListObjectsV2: ['Key', 'Prefix', 'Delimiter', 'StartAfter'],
  ListObjectVersions: ['Key', 'Prefix', 'Delimiter', 'KeyMarker', 'NextKeyMarker'],
  ListMultipartUploads: ['Key', 'Prefix', 'Delimiter', 'KeyMarker', 'NextKeyMarker'],
  ListParts: ['Key'],
}
const SIGNS: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Whether the answer of the engine must be encoded. */
export const isEncoded = ({ name, parameters }: S3Operation): boolean =>
  parameters.has('encoding-type') && NAMES[name] !== undefined

/** Converts an answer with plain names into one to a request for an escaped list. */
export function encodeList(xml: string, { name }: S3Operation): string {
  const names = NAMES[name] ?? []
  const pattern = new RegExp(`<(${names.join('|')})>([^<]*)</\\1>`, 'g')
  return xml
    .replaceAll(pattern, (_whole, element: string, text: string) => `<${element}>${escape(text)}</${element}>`)
    .replace(/<EncodingType>[^<]*<\/EncodingType>|<EncodingType\/>/, '')
    .replace(/<\/\w+>\s*$/, (end) => `<EncodingType>url</EncodingType>${end}`)
}

const escape = (text: string): string => unescapeXml(text).split('/').map(escapeForSignature).join('/')

/** The text of an element, with its references replaced. */
export const unescapeXml = (text: string): string =>
  text.replaceAll(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex?: string, decimal?: string, name?: string) => {
    if (name !== undefined) return SIGNS[name] ?? whole
    return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16))
  })
