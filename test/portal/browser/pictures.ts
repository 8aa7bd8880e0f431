/** Pictures of the portals in the documentation: `npm run portal:pictures` starts the product with simulated guests,
 *  fills an account and writes them to `docs/images/portal`. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answerHelp } from '../../../kit/sys/help.ts'
import { printLine } from '../../../kit/sys/process.ts'
import { Product } from '../../e2e/product.ts'
import { launch } from './kit/chromium.ts'
import { signUp, type Visitor } from './kit/person.ts'
import { ask, fill } from './kit/sample.ts'
import { newStaff } from './kit/staff.ts'

const FOLDER = join(import.meta.dirname, '../../../docs/images/portal')
const SIZE = { width: 1280, height: 800 }
/** For what a page loads: streams never end, so nothing says that it has everything. */
const QUIET_MILLISECONDS = 3_000

interface Picture {
  readonly name: string
  readonly path: string
  readonly theme?: 'dark'
}

const OPERATORS: readonly Picture[] = [
  { name: 'operators', path: '/dashboard' },
  { name: 'nodes', path: '/nodes' },
]
const picturesOf = (serverId: string): readonly Picture[] => [
  { name: 'dashboard', path: '/dashboard' },
  { name: 'servers', path: '/servers' },
  { name: 'server', path: `/servers/${serverId}` },
  { name: 'console', path: `/servers/${serverId}?tab=console`, theme: 'dark' },
  { name: 'new-server', path: '/servers/new' },
  { name: 'network', path: '/networks' },
  { name: 'audit', path: '/audit' },
  { name: 'billing', path: '/settings/billing' },
]

answerHelp(import.meta.filename)
await rm(FOLDER, { recursive: true, force: true })
await mkdir(FOLDER, { recursive: true })
const data = await mkdtemp(join(tmpdir(), 'svccloud-pictures-'))
const flags = ['--hypervisor', 'simulated', '--network', 'user', '--fake-payments']
const product = await Product.start({ data, flags, hasPortal: true, warnings: [/./] })
const browser = await launch()

async function take(url: string, { cookies }: Visitor, pictures: readonly Picture[]): Promise<void> {
  for (const { name, path, theme = 'light' } of pictures) {
    const context = await browser.newContext({ baseURL: url, colorScheme: theme, viewport: SIZE })
    await context.addCookies(cookies.map((cookie) => ({ ...cookie, url })))
    const page = await context.newPage()
    await page.goto(path)
    await page.waitForTimeout(QUIET_MILLISECONDS)
    const file = join(FOLDER, `${name}.png`)
    await page.screenshot({ path: file })
    printLine(file)
    await context.close()
  }
}

try {
  const { endpoints } = product
  const person = await signUp(endpoints)
  await fill(person)
  const { body } = await person.customer.request<{ items: readonly { readonly id: string }[] }>('GET', '/v1/servers')
  await take(endpoints.api_url, person, picturesOf(body.items.at(-1)?.id ?? ''))
  const [operations, finance] = await Promise.all(
    (['operations', 'finance'] as const).map((role) => newStaff({ endpoints, data }, role)),
  )
  if (operations === undefined || finance === undefined) throw new Error('no staff')
  await ask(person, finance)
  await take(endpoints.operator_url, operations, OPERATORS)
} finally {
  await browser.close()
  await product.stop()
  await rm(data, { recursive: true, force: true })
}
