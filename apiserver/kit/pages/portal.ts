/** The portal: the built files of `portal/`, and its page for every path that a browser opens and that nothing else
 *  answers. */
import { access, readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { z } from 'zod'
import { LOOPBACK_HOSTS } from '../../../kit/http/loopback.ts'
import { readStaticFiles, sendStaticFile, type StaticFiles } from '../../../kit/http/static-files.ts'
import { type Brand, BRANDED, brandedPage, PLAIN_BRAND } from './brand.ts'

/** The portals by the name of their page; each has a listener. */
export type PortalPage = 'index.html' | 'operator.html'

export interface Portal {
  readonly files: StaticFiles
  /** The page's own files, and those of all pages: what belongs to another page only is not sent. */
  readonly pathsOf: (page: PortalPage) => ReadonlySet<string>
}

export interface PortalOptions {
  /** Undefined for none. */
  readonly portal: Portal | undefined
  readonly page: PortalPage
  /** Where `/` redirects to; the page itself when absent. */
  readonly home?: string
  /** URL under which people reach the listener. */
  readonly publicUrl?: string | undefined
  /** Origins besides its own that its pages send requests to: those of object storage, to which they upload. */
  readonly connects?: readonly string[]
}

/** Of every page of the portal. */
const policyOf = (connects: readonly string[]): string =>
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src " +
  `${["'self'", ...connects].join(' ')}; worker-src 'self'; manifest-src 'self'; base-uri 'none'; ` +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const ORIGIN = /^https?:\/\/[a-z0-9.[\]:_-]+$/

/** Origins of URLs, each once, for a policy. Throws for a host that a policy cannot name. */
export function originsOf(urls: readonly string[]): readonly string[] {
  const origins = [...new Set(urls.map((url) => new URL(url).origin))].toSorted()
  const wrong = origins.find((origin) => !ORIGIN.test(origin))
  if (wrong !== undefined) throw new Error(`the host of ${wrong} has characters that a content security policy lacks`)
  return origins
}

/** Of images of a deployment: whoever opens one gets a picture that can do nothing. */
const IMAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

/** Of every file. */
const FILE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}
/** Policies are of pages, and of workers, of which there are none: browsers ignore them here. A first visit has a dozen
 *  of these files. */
const SCRIPT_OR_STYLE = /^text\/(javascript|css)\b/

const headersOf = (connects: readonly string[]) => ({
  ...FILE_HEADERS,
  'content-security-policy': policyOf(connects),
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
})

/** Names of these files contain a digest of their content. */
const HASHED = '/assets/'
const FOREVER = 'public, max-age=31536000, immutable'
const CHECKED = 'no-cache'

/** What belongs to others, also when they have nothing at a path. */
const RESERVED = /^\/(v1|mcp|docs|\.well-known|openapi\.json|livez|readyz|metrics)(\/|$)/

/** Of Vite: what each entry and each chunk loads. */
const Manifest = z.record(
  z.string(),
  z.object({
    file: z.string(),
    isEntry: z.boolean().optional(),
    imports: z.array(z.string()).optional(),
    dynamicImports: z.array(z.string()).optional(),
    css: z.array(z.string()).optional(),
    assets: z.array(z.string()).optional(),
  }),
)
type Manifest = z.output<typeof Manifest>

/** Paths of all files that an entry can load; empty for one that there is none of. */
function loadedBy(manifest: Manifest, entry: string): ReadonlySet<string> {
  const chunks = new Set(entry in manifest ? [entry] : [])
  const paths = new Set<string>()
  // The iteration over a set includes items that are added meanwhile.
  for (const name of chunks) {
    const chunk = manifest[name]
    if (chunk === undefined) continue
    for (const file of [chunk.file, ...(chunk.css ?? []), ...(chunk.assets ?? [])]) paths.add(`/${file}`)
    for (const other of [...(chunk.imports ?? []), ...(chunk.dynamicImports ?? [])]) chunks.add(other)
  }
  return paths
}

/** A build that replaces the folder while it is read changes its stamp. */
const READS_MAXIMUM = 5

/** Reads a built portal into memory. Throws node's error when there is none in the folder. */
async function readPortal(folder: string): Promise<Portal> {
  const stampOf = () => readFile(join(folder, 'stamp'), 'utf8')
  for (let reads = 1; ; reads++) {
    try {
      const stamp = await stampOf()
      const files = await readStaticFiles(folder)
      const manifest = Manifest.parse(JSON.parse(await readFile(join(folder, '.vite/manifest.json'), 'utf8')))
      if ((await stampOf()) === stamp) return portalOf(files, manifest)
      throw new Error(`${folder} changes while it is read`)
    } catch (error) {
      if (reads === READS_MAXIMUM) throw error
    }
  }
}

const PAGES: readonly PortalPage[] = ['index.html', 'operator.html']

function portalOf(files: StaticFiles, manifest: Manifest): Portal {
  const own = new Map(PAGES.map((page) => [page, new Set([`/${page}`, ...loadedBy(manifest, page)])]))
  const owned = new Set([...own.values()].flatMap((paths) => [...paths]))
  const common = [...files.keys()].filter((path) => !owned.has(path) && !path.startsWith(HASHED))
  return { files, pathsOf: (page) => new Set([...(own.get(page) ?? []), ...common].filter((path) => files.has(path))) }
}

/** The portal with the pages and files of the brand. */
function brandedPortal(portal: Portal, { page, files }: Brand): Portal {
  if (page === undefined) return portal
  const pages = PAGES.flatMap((name) => {
    const plain = portal.files.get(`/${name}`)
    return plain === undefined ? [] : [[`/${name}`, brandedPage(plain, page)] as const]
  })
  return {
    files: new Map([...portal.files, ...files, ...pages]),
    pathsOf: (name) => new Set([...portal.pathsOf(name), ...files.keys()]),
  }
}

/** The folder of an installation. */
const INSTALLED = join(import.meta.dirname, '../../../portal/dist')

/** Reads the portal of the setting: undefined when it says `none`, or nothing and none was built. Throws node's error
 *  when the folder that it names has none. */
export async function openPortal(
  directory: string | undefined,
  brand: Brand = PLAIN_BRAND,
): Promise<Portal | undefined> {
  const portal = await plainPortal(directory)
  return portal && brandedPortal(portal, brand)
}

async function plainPortal(directory: string | undefined): Promise<Portal | undefined> {
  if (directory === 'none') return undefined
  if (directory !== undefined) return readPortal(directory)
  const isBuilt = await access(join(INSTALLED, 'stamp')).then(
    () => true,
    () => false,
  )
  return isBuilt ? readPortal(INSTALLED) : undefined
}

type Answering = (request: IncomingMessage, response: ServerResponse) => boolean

/** Answers browsers with pages and files of the portal, everything else by the others; true when one of them answered.
 *  A client that does not accept HTML gets the answer of the others, or of the API. */
export function portalPages(
  { portal, page, home, publicUrl, connects = [] }: PortalOptions,
  others: Answering,
): Answering {
  const paths = portal?.pathsOf(page)
  const html = portal?.files.get(`/${page}`)
  if (portal === undefined || paths === undefined || html === undefined) return others
  const headers = headersOf(connects)
  return (request, response) => {
    const target = request.url ?? ''
    const path = target.split('?')[0] ?? ''
    if ((request.method !== 'GET' && request.method !== 'HEAD') || RESERVED.test(path)) return others(request, response)
    const file = paths.has(path) ? portal.files.get(path) : undefined
    if (file !== undefined && file !== html) {
      const isBrand = path.startsWith(BRANDED)
      const caching = isBrand || path.startsWith(HASHED) ? FOREVER : CHECKED
      const policy = isBrand ? { 'content-security-policy': IMAGE_POLICY } : {}
      const own = SCRIPT_OR_STYLE.test(file.type) ? FILE_HEADERS : { ...headers, ...policy }
      sendStaticFile(request, response, file, { ...own, 'cache-control': caching })
      return true
    }
    if (hasExtension(path) || !acceptsHtml(request)) return others(request, response)
    const location = atPublicName(request.headers.host, publicUrl, target) ?? (path === '/' ? home : undefined)
    if (location === undefined)
      sendStaticFile(request, response, html, { ...headers, 'cache-control': CHECKED, vary: 'Accept' })
    else response.writeHead(302, { ...headers, location, 'cache-control': 'no-store' }).end()
    return true
  }
}

const hasExtension = (path: string): boolean => /\.[^/]*$/.test(path)

const acceptsHtml = ({ headers }: IncomingMessage): boolean => /\btext\/html\b/i.test(headers.accept ?? '')

/** `localhost` and 127.0.0.1 are two origins with two sessions. Where to go instead, when the public URL has another
 *  name of this machine and the same port; else undefined. */
function atPublicName(host: string | undefined, publicUrl: string | undefined, target: string): string | undefined {
  if (host === undefined || publicUrl === undefined || !target.startsWith('/')) return undefined
  const wanted = new URL(publicUrl)
  const requestUrl = URL.parse(`${wanted.protocol}//${host}`)
  if (requestUrl === null || requestUrl.port !== wanted.port || requestUrl.hostname === wanted.hostname)
    return undefined
  const areLoopback = [requestUrl, wanted].every(({ hostname }) => LOOPBACK_HOSTS.includes(hostname))
  return areLoopback ? `${wanted.origin}${target}` : undefined
}
