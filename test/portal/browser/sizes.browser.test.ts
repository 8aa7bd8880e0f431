/** What the pages weigh. The product of the tier has built them. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { BUILT } from '../../../portal/build/stamp.ts'
import { usePortal } from './kit/browser.ts'

const KILOBYTE = 1_000
/** In bytes, compressed by gzip. */
const MAXIMA = {
  toFirstList: 230 * KILOBYTE,
  page: 20 * KILOBYTE,
  styles: 15 * KILOBYTE,
  console: 95 * KILOBYTE,
  charts: 30 * KILOBYTE,
  firstVisit: 260 * KILOBYTE,
} as const
const REQUESTS_MAXIMUM = 18

/** Chunks with a library that only they load. */
const LARGER: Readonly<Record<string, number>> = {
  'nouns/server/console.tsx': MAXIMA.console,
  'nouns/server/metrics.tsx': MAXIMA.charts,
}
/** The page, its texts, and a list, where that is a chunk for itself. */
const FIRST = ['index.html', 'texts/en.ts']
const LIST = 'nouns/list-page.tsx'

/** A path, a session, an operation, a text and a module of operators. */
const OF_OPERATORS = [
  '/v1/operator/',
  '/v1/admin/',
  'svccloud_staff_csrf',
  'fence_node',
  'Nobody asks for hosts',
  'list_accounts_as_staff',
]

const portal = usePortal()

/** Of Vite, as far as it is read here. */
interface Chunk {
  readonly file: string
  readonly isDynamicEntry?: boolean
  readonly imports?: readonly string[]
  readonly dynamicImports?: readonly string[]
  readonly css?: readonly string[]
}
type Manifest = Readonly<Record<string, Chunk>>

const readManifest = async (): Promise<Manifest> =>
  JSON.parse(await readFile(join(BUILT, '.vite/manifest.json'), 'utf8')) as Manifest // as Vite writes it

const sizeOf = async (file: string): Promise<number> => gzipSync(await readFile(join(BUILT, file)), { level: 9 }).length
const sizeOfAll = async (files: Iterable<string>): Promise<number> =>
  (await Promise.all([...new Set(files)].map(sizeOf))).reduce((sum, size) => sum + size, 0)

/** Names of the chunks that are loaded with it. */
function loadedWith(manifest: Manifest, ...names: readonly string[]): ReadonlySet<string> {
  const loaded = new Set(names.filter((name) => name in manifest))
  // The iteration over a set includes items that are added meanwhile.
  for (const name of loaded) for (const other of manifest[name]?.imports ?? []) loaded.add(other)
  return loaded
}
const filesOf = (manifest: Manifest, names: Iterable<string>): string[] =>
  [...names].flatMap((name) => manifest[name]?.file ?? [])

/** Names of the chunks that it can ever load. */
function reachableFrom(manifest: Manifest, name: string): ReadonlySet<string> {
  const found = new Set([name])
  // The iteration over a set includes items that are added meanwhile.
  for (const each of found)
    for (const other of [...(manifest[each]?.imports ?? []), ...(manifest[each]?.dynamicImports ?? [])])
      found.add(other)
  return found
}

describe('the portal', () => {
  it('brings nothing of operators to customers', async () => {
    const manifest = await readManifest()
    const files = filesOf(manifest, reachableFrom(manifest, 'index.html'))
    const texts = await Promise.all(files.map((file) => readFile(join(BUILT, file), 'utf8')))
    const found = OF_OPERATORS.filter((mark) => texts.some((text) => text.includes(mark)))
    expect(found).toEqual([])
    // What is looked for is there: the page of operators has it.
    const own = filesOf(manifest, reachableFrom(manifest, 'operator.html'))
    const theirs = (await Promise.all(own.map((file) => readFile(join(BUILT, file), 'utf8')))).join('\n')
    expect(OF_OPERATORS.filter((mark) => !theirs.includes(mark))).toEqual([])
  })

  it('loads the page of operators with as little', async () => {
    const manifest = await readManifest()
    const loaded = loadedWith(manifest, 'operator.html', 'texts/en.ts', 'operator/texts/en.ts', LIST)
    expect(await sizeOfAll(filesOf(manifest, loaded))).toBeLessThan(MAXIMA.toFirstList)
  })

  it('loads a list with little', async () => {
    const manifest = await readManifest()
    expect(Object.keys(manifest)).toEqual(expect.arrayContaining(FIRST))
    const loaded = loadedWith(manifest, ...FIRST, LIST)
    expect(await sizeOfAll(filesOf(manifest, loaded))).toBeLessThan(MAXIMA.toFirstList)
  })

  it('loads each page with little more', async () => {
    const manifest = await readManifest()
    const shared = new Set([...loadedWith(manifest, 'index.html'), ...loadedWith(manifest, 'operator.html')])
    const larger: string[] = []
    for (const [name, { isDynamicEntry }] of Object.entries(manifest)) {
      if (isDynamicEntry !== true) continue
      const own = [...loadedWith(manifest, name)].filter((other) => !shared.has(other))
      const size = await sizeOfAll(filesOf(manifest, own))
      if (size > (LARGER[name] ?? MAXIMA.page)) larger.push(`${name}: ${size} bytes`)
    }
    expect(larger).toEqual([])
  })

  it('has few styles', async () => {
    const manifest = await readManifest()
    const styles = Object.values(manifest).flatMap(({ css = [] }) => css)
    expect(styles).not.toEqual([])
    expect(await sizeOfAll(styles)).toBeLessThan(MAXIMA.styles)
  })

  it('is here with few requests and bytes at the first visit', async () => {
    const page = await portal.page()
    const session = await page.context().newCDPSession(page)
    let [requests, bytes] = [0, 0]
    session.on('Network.requestWillBeSent', () => void requests++)
    session.on('Network.loadingFinished', ({ encodedDataLength }) => void (bytes += encodedDataLength))
    await session.send('Network.enable')
    await page.goto('/', { waitUntil: 'networkidle' })
    await page.getByRole('heading', { level: 1 }).waitFor()
    expect(bytes).toBeGreaterThan(0)
    expect({ requests, bytes }).toSatisfy((seen: { requests: number; bytes: number }) => {
      return seen.requests <= REQUESTS_MAXIMUM && seen.bytes <= MAXIMA.firstVisit
    })
  })
})
