/** User data of the first boot: converts what people send into what a guest can run. */
import { gunzipSync } from 'node:zlib'

/** The maximum size of packed data, unpacked: more would not fit into a Secret. */
export const UNPACKED_BYTES_MAXIMUM = 512 * 1024

/** The bytes for the guest, or why there are none: half a sentence for people. */
export type UserData = { readonly bytes: Buffer } | { readonly fault: string }

const GZIP = Buffer.from([0x1f, 0x8b])
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])
const PROGRAM = '#!'
/** Prefixes of documents that only cloud-init understands. */
const DOCUMENTS = [
  '#cloud-config',
  '#cloud-boothook',
  '#include',
  '#part-handler',
  '## template: jinja',
  'Content-Type: multipart/',
]
const BASE64 = /^[A-Za-z0-9+/]{4,}={0,2}$/
/** Templates without cloud-init, by the name of their built image. */
const RUN_PROGRAMS_ONLY = ['tiny-linux']

export const runsProgramsOnly = (builtImage: string | undefined): boolean =>
  builtImage !== undefined && RUN_PROGRAMS_ONLY.includes(builtImage)

const beginsWith = (bytes: Buffer, text: string): boolean =>
  bytes.subarray(0, text.length).toString('latin1').toLowerCase() === text.toLowerCase()
const isGzip = (bytes: Buffer): boolean => bytes.subarray(0, GZIP.length).equals(GZIP)
const withoutMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? bytes.subarray(BYTE_ORDER_MARK.length) : bytes
const isRunnable = (bytes: Buffer): boolean => [PROGRAM, ...DOCUMENTS].some((begin) => beginsWith(bytes, begin))

/** Text in base64 is decoded when its content is packed or executable; any other text stays as it is. */
function decoded(bytes: Buffer): Buffer {
  const text = bytes.toString('latin1').replace(/\s+/g, '')
  if (text.length % 4 !== 0 || !BASE64.test(text)) return bytes
  const held = Buffer.from(text, 'base64')
  return isGzip(held) || isRunnable(withoutMark(held)) ? held : bytes
}

/** Decodes base64, unpacks gzip, removes a byte order mark, and converts the line ends of programs. Anything that is
 *  neither program nor document stays as it is: a guest may read it from the metadata service. */
export function readUserData(input: Uint8Array, { isProgramsOnly }: { readonly isProgramsOnly: boolean }): UserData {
  let bytes = decoded(Buffer.from(input))
  if (isGzip(bytes)) {
    try {
      bytes = gunzipSync(bytes, { maxOutputLength: UNPACKED_BYTES_MAXIMUM })
    } catch {
      return { fault: `is packed by gzip, and does not unpack to at most ${UNPACKED_BYTES_MAXIMUM} bytes` }
    }
  }
  bytes = withoutMark(bytes)
  if (beginsWith(bytes, PROGRAM))
    return { bytes: Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1') }
  if (isProgramsOnly && isRunnable(bytes))
    return { fault: 'is for cloud-init, which the template does not have: it runs programs, which begin with #!' }
  return { bytes }
}
