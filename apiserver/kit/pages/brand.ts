/** The brand of a deployment: its name, images, colours, links and mail texts, from one file (docs/white-label.md). */
import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { type Accent, faultOfAccent, shadesOf } from './colours.ts'
import { type Language, LANGUAGES } from '../../../domain/mail/language.ts'
import { MAIL_NAMES } from '../../../domain/mail/mails.ts'
import { faultsOfMailText, type MailStyle, PLAIN_STYLE } from '../../../domain/mail/write.ts'
import { type StaticFile, staticFileOf, type StaticFiles } from '../../../kit/http/static-files.ts'
import { SettingsRefused } from '../../../kit/sys/settings.ts'

const NAME_CHARACTERS_MAXIMUM = 40
const FOOTER_CHARACTERS_MAXIMUM = 2_000
const LINK_CHARACTERS_MAXIMUM = 500
const FILE_BYTES_MAXIMUM = 256 * 1024
const IMAGE_BYTES_MAXIMUM = 256 * 1024
const IMAGE_PIXELS_MAXIMUM = 2_048

const Name = z
  .string()
  .trim()
  .min(1)
  .max(NAME_CHARACTERS_MAXIMUM)
  .regex(/^\P{C}+$/u, 'contains characters that cannot be seen')
const FileName = z.string().regex(/^\w[\w.-]*\.(svg|png)$/i, 'must name an .svg or .png file beside this one')
const Colour = z
  .string()
  .regex(/^#[\da-f]{6}$/i, 'must look like #0b6b3a')
  .toLowerCase()
const Link = z
  .string()
  .max(LINK_CHARACTERS_MAXIMUM)
  .refine(
    (text) => ['https:', 'mailto:'].includes(URL.parse(text)?.protocol ?? ''),
    'must start with https: or mailto:',
  )
const Text = z.strictObject({ subject: z.string().optional(), body: z.string().optional() })
const Mails = z.strictObject({
  footer: z
    .string()
    .max(FOOTER_CHARACTERS_MAXIMUM)
    .regex(/^[\P{Cc}\n]*$/u, 'contains characters that cannot be seen')
    .optional(),
  texts: z.partialRecord(z.enum(MAIL_NAMES), Text).optional(),
})

/** What the file may contain. */
export const BrandFile = z.strictObject({
  name: Name.optional().describe('Name of the deployment: in titles, on pages and in mails.'),
  logo: FileName.optional().describe('In place of the mark and the name; the name is what screen readers read.'),
  logo_dark: FileName.optional().describe('The logo in the dark theme. Without it, the same.'),
  icon: FileName.optional().describe('Square: in the tab of the browser, and in place of the mark without a logo.'),
  accent: z
    .strictObject({ light: Colour, dark: Colour })
    .optional()
    .describe('Colour of buttons, links and what is selected, in each theme.'),
  links: z
    .strictObject({
      imprint: Link.optional(),
      privacy: Link.optional(),
      terms: Link.optional(),
      support: Link.optional(),
      status: Link.optional(),
    })
    .optional()
    .describe('Below the navigation, and on pages before the sign-in.'),
  language: z.enum(LANGUAGES).default('en').describe('Language of mails to those who have chosen none.'),
  mails: z
    .strictObject({ en: Mails.optional(), de: Mails.optional() } satisfies Record<Language, unknown>)
    .optional()
    .describe('Texts of mails that are not ours, and what is below each mail, by language.'),
})
type BrandFile = z.output<typeof BrandFile>

/** What the server does with it. */
export interface Brand {
  readonly language: Language
  readonly mails: MailStyle
  /** Of the portal, by path. */
  readonly files: StaticFiles
  /** Undefined where there is no file: pages are as they were built. */
  readonly page: PageBrand | undefined
}

/** What pages of the portal show, with the paths of images. The portal reads it from an element of the page. */
interface PageBrand {
  readonly name: string
  readonly icon?: string | undefined
  readonly logo?: string | undefined
  readonly logo_dark?: string | undefined
  readonly links: Readonly<Record<string, string | undefined>>
  /** Path of the stylesheet. */
  readonly style?: string | undefined
}

/** Ours. */
export const PLAIN_BRAND: Brand = { language: 'en', mails: PLAIN_STYLE, files: new Map(), page: undefined }

/** Where files of the brand are. Their names contain a digest of their content. */
export const BRANDED = '/brand/'

/** Reads the file of the setting and the images beside it. Throws SettingsRefused, with a line for each fault. */
export async function openBrand(path: string | undefined): Promise<Brand> {
  if (path === undefined) return PLAIN_BRAND
  try {
    return await readBrand(path)
  } catch (error) {
    if (!(error instanceof Faults)) throw error
    const lines = error.faults.map((fault) => `- ${fault}.`)
    throw new SettingsRefused(
      `SVCCLOUD_BRAND_FILE (brandFile): ${path} cannot be used (docs/white-label.md says what it may contain):\n` +
        lines.join('\n'),
    )
  }
}

class Faults extends Error {
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}

async function readBrand(path: string): Promise<Brand> {
  const file = contentOf(await bytesOf(path, FILE_BYTES_MAXIMUM))
  const faults = [
    ...(['light', 'dark'] as const).flatMap((theme) =>
      file.accent === undefined ? [] : (faultOfAccent(file.accent, theme) ?? []),
    ),
    ...LANGUAGES.flatMap((language) =>
      Object.entries(file.mails?.[language]?.texts ?? {}).flatMap(([name, text]) => {
        const known = MAIL_NAMES.find((each) => each === name)
        return known === undefined || text === undefined
          ? []
          : faultsOfMailText(known, text).map((fault) => `mails.${language}.texts.${name}: ${fault}`)
      }),
    ),
  ]
  const folder = dirname(path)
  const images = new Map<string, StaticFile>()
  const open = async (field: 'logo' | 'logo_dark' | 'icon'): Promise<string | undefined> => {
    const name = file[field]
    if (name === undefined) return undefined
    try {
      const image = imageOf(name, await bytesOf(join(folder, name), IMAGE_BYTES_MAXIMUM))
      const address = addressOf(image.bytes, extname(name).toLowerCase())
      images.set(address, image)
      return address
    } catch (error) {
      if (!(error instanceof Faults)) throw error
      faults.push(...error.faults.map((fault) => `${field}: ${fault}`))
      return undefined
    }
  }
  const [logo, logoDark, icon] = [await open('logo'), await open('logo_dark'), await open('icon')]
  if (faults.length > 0) throw new Faults(faults)
  const style = file.accent === undefined ? undefined : styleOf(file.accent)
  const name = file.name ?? PLAIN_STYLE.product
  return {
    language: file.language,
    mails: {
      product: name,
      texts: { en: file.mails?.en?.texts, de: file.mails?.de?.texts },
      footers: { en: file.mails?.en?.footer, de: file.mails?.de?.footer },
    },
    files: new Map([...images, ...(style === undefined ? [] : [style])]),
    page: { name, icon, logo, logo_dark: logoDark, links: file.links ?? {}, style: style?.[0] },
  }
}

async function bytesOf(path: string, maximum: number): Promise<Buffer> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new Faults([`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`])
  })
  if (bytes.length > maximum) throw new Faults([`${path} has more than ${maximum} bytes`])
  return bytes
}

function contentOf(bytes: Buffer): BrandFile {
  let content: unknown
  try {
    content = parse(bytes.toString('utf8'))
  } catch (error) {
    throw new Faults([`it is not YAML: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`])
  }
  const read = BrandFile.safeParse(content)
  if (read.success) return read.data
  throw new Faults(read.error.issues.flatMap(linesOf))
}

function linesOf(issue: z.core.$ZodIssue): readonly string[] {
  const place = issue.path.map(String).join('.')
  const within = place === '' ? '' : `${place}.`
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => `${within}${key}: there is no such setting`)
  return [place === '' ? 'it must contain settings by their names' : `${place}: ${issue.message}`]
}

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const PNG_WIDTH_AT = 16
const PNG_HEIGHT_AT = 20
const PNG_HEAD_BYTES = 24
/** The root element, after a declaration and comments. A document type could define entities. */
const SVG = /^\uFEFF?\s*(<\?xml[^>]*\?>\s*)?(<!--[\s\S]*?-->\s*)*<svg[\s>]/

/** Its content decides, whatever the file is named. Scripts in an SVG never run: pages show it as an image only, and
 *  its policy forbids them to those who open it. */
function imageOf(name: string, bytes: Buffer): StaticFile {
  const isPng = bytes.subarray(0, PNG.length).equals(PNG) && bytes.length > PNG_HEAD_BYTES
  if (/\.png$/i.test(name) && isPng) {
    const sides = [bytes.readUInt32BE(PNG_WIDTH_AT), bytes.readUInt32BE(PNG_HEIGHT_AT)]
    if (sides.some((side) => side < 1 || side > IMAGE_PIXELS_MAXIMUM))
      throw new Faults([`${name} must have 1 to ${IMAGE_PIXELS_MAXIMUM} pixels on each side`])
    return staticFileOf('.png', bytes)
  }
  if (/\.svg$/i.test(name) && SVG.test(bytes.toString('utf8'))) return staticFileOf('.svg', bytes)
  throw new Faults([`${name} is not the image that its name says`])
}

const DIGEST_CHARACTERS = 16
const addressOf = (bytes: Buffer, extension: string): string =>
  `${BRANDED}${hash('sha256', bytes, 'hex').slice(0, DIGEST_CHARACTERS)}${extension}`

/** Rules outside all layers: they win against those of the portal. */
function styleOf(accent: Accent): readonly [string, StaticFile] {
  const [light, dark] = [shadesOf(accent, 'light'), shadesOf(accent, 'dark')]
  const rules = Object.entries(light).map(
    ([name, shade]) => `--${name}:light-dark(${shade},${dark[name as keyof typeof dark]})`, // the same names
  )
  const file = staticFileOf('.css', Buffer.from(`:root{${rules.join(';')}}\n`))
  return [addressOf(file.bytes, '.css'), file]
}

/** A page of the portal with the brand: title, icon, colours, and the element that the portal reads. */
export function brandedPage(page: StaticFile, brand: PageBrand): StaticFile {
  const { style, ...shown } = brand
  const head = [
    `<meta name="brand" content="${escaped(JSON.stringify(shown))}" />`,
    ...(style === undefined ? [] : [`<link rel="stylesheet" href="${style}" />`]),
    ...(brand.icon === undefined ? [] : [`<link rel="icon" href="${brand.icon}" />`]),
  ]
  const text = page.bytes.toString('utf8')
  const titled = text.replace(/<title>([^<]*)<\/title>/, (_, title: string) => {
    const named = title.replace(PLAIN_STYLE.product, () => escaped(brand.name))
    return `<title>${named}</title>`
  })
  const bare = brand.icon === undefined ? titled : titled.replace(/<link rel="icon"[^>]*>/, '')
  return staticFileOf('.html', Buffer.from(bare.replace('</head>', () => `${head.join('\n')}\n</head>`)))
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (mark) => ENTITIES[mark] ?? '')

/** `Name <address>`, with the name of the deployment where the setting is an address only. */
export const senderOf = (from: string, { mails: { product } }: Brand): string =>
  from.includes('<') ? from : `${product} <${from}>`
