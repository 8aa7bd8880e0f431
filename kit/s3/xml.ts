/** A strict reader of the documents that clients of S3 send. Anything that another reader could understand differently
 *  is refused: document types, CDATA, comments, processing instructions, entities except the five predefined ones,
 *  prefixes, attributes other than the name space of S3. Pure. */
import { malformedXml } from './refusal.ts'

export interface Element {
  readonly name: string
  readonly children: readonly Element[]
  /** Empty where there are children. */
  readonly text: string
}

const DEPTH_MAXIMUM = 32
/** The size of ten thousand parts, each with all its digests. */
const ELEMENTS_MAXIMUM = 150_000
const DECLARATION =
  /^<\?xml\s+version=(?:"1\.0"|'1\.0')(?:\s+encoding=(?:"utf-8"|'utf-8'))?(?:\s+standalone=["'](?:yes|no)["'])?\s*\?>/i
const TAG = /<(\/?)([A-Za-z][A-Za-z0-9]{0,63})((?:\s+xmlns\s*=\s*(?:"[^"<&]{0,256}"|'[^'<&]{0,256}'))?)\s*(\/?)>/y
const NAME_SPACE = /=\s*["'](?:|https?:\/\/s3\.amazonaws\.com\/doc\/2006-03-01\/?)["']$/
const TEXT = /[^<]+/y
const REFERENCE_CHARACTERS_MAXIMUM = 9
const NUMBER = /^#(?:(\d{1,7})|x([0-9a-fA-F]{1,6}))$/
const SIGNS: ReadonlyMap<string, string> = new Map(Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }))
/** Everything outside the characters of XML 1.0. */
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/

const malformed = () => malformedXml('The XML you provided was not well-formed or did not validate against our schema.')

interface Open {
  readonly name: string
  readonly children: Element[]
  text: string
}

/** The root element of the document. Throws the Refusal for anything else. */
export function readXml(bytes: Uint8Array): Element {
  const source = decode(bytes)
  const root: Open = { name: '', children: [], text: '' }
  const open: Open[] = [root]
  let elements = 0
  let index = DECLARATION.exec(source)?.[0].length ?? 0
  while (index < source.length) {
    const here = open.at(-1) ?? root
    if (source[index] !== '<') {
      TEXT.lastIndex = index
      const piece = TEXT.exec(source)?.[0] ?? ''
      here.text += unescapeText(piece)
      index += piece.length
      continue
    }
    TAG.lastIndex = index
    const [tag, slash, name = '', space = '', end] = TAG.exec(source) ?? []
    if (tag === undefined || (space !== '' && !NAME_SPACE.test(space.trim()))) throw malformed()
    index += tag.length
    if (slash === '' && ++elements > ELEMENTS_MAXIMUM) throw malformed()
    if (slash === '/') {
      if (end === '/' || space !== '' || open.length < 2 || here.name !== name) throw malformed()
      open.pop()
      close(open.at(-1) ?? root, here)
    } else if (end === '/') close(here, { name, children: [], text: '' })
    else if (open.length > DEPTH_MAXIMUM) throw malformed()
    else open.push({ name, children: [], text: '' })
  }
  const [element, ...more] = root.children
  if (open.length > 1 || element === undefined || more.length > 0 || root.text.trim() !== '') throw malformed()
  return element
}

function decode(bytes: Uint8Array): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    if (!FORBIDDEN.test(text)) return text.replaceAll(/\r\n?/g, '\n')
  } catch {
    // Not UTF-8.
  }
  throw malformed()
}

function close(parent: Open, { name, children, text }: Open): void {
  if (children.length > 0 && text.trim() !== '') throw malformed()
  parent.children.push({ name, children, text: children.length > 0 ? '' : text })
}

/** Written by hand, because a body may consist of references only, and other requests wait. */
function unescapeText(piece: string): string {
  if (piece.includes(']]>')) throw malformed()
  let [text, from] = ['', 0]
  for (let at = piece.indexOf('&'); at >= 0; at = piece.indexOf('&', from)) {
    const end = piece.indexOf(';', at)
    if (end < 0 || end - at > REFERENCE_CHARACTERS_MAXIMUM) throw malformed()
    text += piece.slice(from, at) + signOf(piece.slice(at + 1, end))
    from = end + 1
  }
  return from === 0 ? piece : text + piece.slice(from)
}

function signOf(name: string): string {
  const known = SIGNS.get(name)
  if (known !== undefined) return known
  const [, decimal, hex] = NUMBER.exec(name) ?? []
  const point = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
  if (!(point > 0 && point <= 0x10_ffff) || (point >= 0xd800 && point <= 0xdfff)) throw malformed()
  const sign = String.fromCodePoint(point)
  if (FORBIDDEN.test(sign)) throw malformed()
  return sign
}
