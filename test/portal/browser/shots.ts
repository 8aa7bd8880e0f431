/** Pictures of the portals for people: `npm run portal:shots [FOLDER] [customers|operators]` starts the product with
 *  simulated guests, fills an account, follows every link and writes pictures of each page (light, dark, narrow), and
 *  one sheet of all of them. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Browser } from 'playwright-core'
import { answerHelp } from '../../../kit/sys/help.ts'
import { printLine, processArguments } from '../../../kit/sys/process.ts'
import { Product } from '../../e2e/product.ts'
import { launch } from './kit/chromium.ts'
import { MANAGED_PATHS, showManaged } from './kit/managed.ts'
import { signUp, type Visitor } from './kit/person.ts'
import { ask, fill } from './kit/sample.ts'
import { newStaff, type StaffMember } from './kit/staff.ts'

const FOLDER = join(import.meta.dirname, '../../../test-results/portal')
const VIEWS = [
  { name: 'light', theme: 'light', width: 1360 },
  { name: 'dark', theme: 'dark', width: 1360 },
  { name: 'narrow', theme: 'light', width: 390 },
] as const
const HEIGHT = 900
/** Pages of people who are not signed in. */
const OUTSIDE = ['/login', '/login?error=provider_error', '/signup', '/reset-password', '/verify-email']
const PAGES_MAXIMUM = 200
/** For what a page loads: streams never end, so nothing says that it has everything. */
const QUIET_MILLISECONDS = 2_000

const ID = /[0-9a-f]{8}-[0-9a-f-]{27}/g

/** Paths of one page of each kind, in the order in which a person finds them. */
async function findPages(browser: Browser, url: string, person: Visitor): Promise<readonly string[]> {
  const context = await browser.newContext({ baseURL: url })
  await context.addCookies(person.cookies.map((cookie) => ({ ...cookie, url })))
  const page = await context.newPage()
  const found = new Map([['/dashboard', '/dashboard']])
  // The iteration over a map includes items that are added meanwhile.
  for (const path of found.values()) {
    if (found.size > PAGES_MAXIMUM) break
    await page.goto(path)
    await page.waitForTimeout(QUIET_MILLISECONDS)
    const links = await page.evaluate<readonly string[]>(`[...document.querySelectorAll('a[href^="/"]')]
      .filter((link) => link.target !== '_blank').map((link) => link.getAttribute('href'))`)
    const tabs = await page.evaluate<readonly string[]>(`[...document.querySelectorAll('main .tab-list [role="tab"]')]
      .map((tab) => tab.dataset.key ?? '')`)
    const [own = ''] = path.split('?')
    for (const tab of tabs) {
      const link = own.startsWith('/settings') ? `/settings/${tab}` : `${own}?tab=${tab}`
      found.set(link.replace(ID, ':id'), link)
    }
    for (const link of links) {
      const kind = link.replace(ID, ':id').replace(/[?#].*$/, '')
      if (!/^\/(v1|docs)/.test(kind) && !found.has(kind)) found.set(kind, link)
    }
  }
  await context.close()
  return [...found.values()]
}

interface Shooting {
  readonly url: string
  readonly folder: string
  /** Nobody is signed in when absent. */
  readonly person?: Visitor
  /** Before the names of files. */
  readonly name: string
  /** Managed services have answers: guests are simulated. */
  readonly isManaged?: boolean
}

interface Shot {
  readonly path: string
  /** In the order of VIEWS. */
  readonly files: readonly string[]
}

async function shoot(
  browser: Browser,
  { url, folder, person, name: who, isManaged = false }: Shooting,
  paths: readonly string[],
): Promise<readonly Shot[]> {
  const files = new Map<string, string[]>(paths.map((path) => [path, []]))
  for (const { name, theme, width } of VIEWS) {
    const context = await browser.newContext({ baseURL: url, colorScheme: theme, viewport: { width, height: HEIGHT } })
    if (person !== undefined) await context.addCookies(person.cookies.map((cookie) => ({ ...cookie, url })))
    const page = await context.newPage()
    if (isManaged) await showManaged(page, url)
    for (const path of paths) {
      await page.goto(path)
      await page.waitForTimeout(QUIET_MILLISECONDS)
      const file = `${who}${path
        .replace(ID, 'id')
        .replaceAll(/[^a-z0-9]+/gi, '-')
        .replace(/-$/, '')}-${name}.png`
      await page.screenshot({ path: join(folder, file), fullPage: true })
      files.get(path)?.push(file)
    }
    await context.close()
  }
  return [...files].map(([path, all]) => ({ path, files: all }))
}

/** A page with all pictures, and its own picture. */
async function writeSheet(browser: Browser, folder: string, shots: readonly Shot[]): Promise<string> {
  const rows = shots.map(({ path, files }) => {
    const pictures = files.map((file) => `<img src="${file}" height="300">`)
    return `<h2>${path.replace(ID, ':id')}</h2><div>${pictures.join(' ')}</div>`
  })
  const sheet = join(folder, 'sheet.html')
  const style = '<style>body{font:14px sans-serif}</style>'
  await writeFile(sheet, `<!doctype html><meta charset="utf-8">${style}${rows.join('')}`)
  const page = await browser.newPage({ viewport: { width: 1100, height: HEIGHT } })
  await page.goto(`file://${sheet}`)
  await page.screenshot({ path: join(folder, 'sheet.png'), fullPage: true })
  return sheet
}

async function ofCustomers(browser: Browser, shooting: Omit<Shooting, 'name'>): Promise<readonly Shot[]> {
  const { url, person } = shooting
  const outside = await shoot(browser, { url, folder, name: '' }, OUTSIDE)
  if (person === undefined) return outside
  const paths = [...(await findPages(browser, url, person)), ...MANAGED_PATHS]
  return [...outside, ...(await shoot(browser, { ...shooting, name: '', isManaged: true }, paths))]
}

/** Pages that several roles read are shot once. */
async function ofOperators(
  browser: Browser,
  folder: string,
  members: readonly StaffMember[],
): Promise<readonly Shot[]> {
  const url = product.endpoints.operator_url
  const shots = [...(await shoot(browser, { url, folder, name: 'staff' }, ['/login']))]
  const seen = new Set<string>()
  for (const person of members) {
    const paths = (await findPages(browser, url, person)).filter((path) => !seen.has(path.replace(ID, ':id')))
    for (const path of paths) seen.add(path.replace(ID, ':id'))
    shots.push(...(await shoot(browser, { url, folder, person, name: 'staff' }, paths)))
  }
  return shots
}

answerHelp(import.meta.filename)
const [given, only] = processArguments()
const folder = resolve(given ?? FOLDER)
await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const data = await mkdtemp(join(tmpdir(), 'svccloud-shots-'))
const flags = ['--hypervisor', 'simulated', '--network', 'user', '--fake-payments']
const product = await Product.start({ data, flags, hasPortal: true, warnings: [/./] })
const browser = await launch()
try {
  const { endpoints } = product
  const person = await signUp(endpoints)
  await fill(person)
  const shots: Shot[] = []
  if (only !== 'operators') shots.push(...(await ofCustomers(browser, { url: endpoints.api_url, folder, person })))
  if (only !== 'customers') {
    const [operations, finance, support] = await Promise.all(
      (['operations', 'finance', 'support'] as const).map((role) => newStaff({ endpoints, data }, role)),
    )
    if (operations === undefined || finance === undefined || support === undefined) throw new Error('no staff')
    await ask(person, finance)
    shots.push(...(await ofOperators(browser, folder, [operations, finance, support])))
  }
  printLine(await writeSheet(browser, folder, shots))
} finally {
  await browser.close()
  await product.stop()
  await rm(data, { recursive: true, force: true })
}
