/** Pictures of the portals in the documentation: `npm run portal:pictures` starts the product, fills an account and
 *  writes them to `docs/images/portal`. Its guests are real, so that the console has something to show: it needs
 *  QEMU. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { answerHelp } from '../../../kit/sys/help.ts'
import { printLine } from '../../../kit/sys/process.ts'
import { clearAway, Product } from '../../e2e/product.ts'
import { launch } from './kit/chromium.ts'
import { signUp, type Visitor } from './kit/person.ts'
import { ask, fill } from './kit/sample.ts'
import { newStaff } from './kit/staff.ts'

const FOLDER = join(import.meta.dirname, '../../../docs/images/portal')
const SIZE = { width: 1280, height: 800 }
/** For what a page loads: streams never end, so nothing says that it has everything. */
const QUIET_MILLISECONDS = 3_000
/** Guests boot while their first pictures are taken. */
const BOOT_MILLISECONDS = 120_000

interface Picture {
  readonly name: string
  readonly path: string
  readonly theme?: 'dark'
  /** What a person does on the page first. */
  readonly act?: (page: Page) => Promise<void>
}

/** What somebody may type who has just made a server, and what is in the answer. */
const COMMANDS = [
  ['uname -srm', 'Linux '],
  ['free -m', 'Mem:'],
  ['uptime', 'load average'],
] as const
/** What a guest writes last of its boot. */
const BOOTED = 'END SSH HOST KEY KEYS'

/** Opens the console and types in it, once the guest is quiet. */
async function typeAtPrompt(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Open the console' }).click()
  const lines = page.getByRole('group', { name: 'Serial console' }).getByRole('listitem')
  await lines.filter({ hasText: BOOTED }).first().waitFor()
  await page.keyboard.type('clear\n')
  await lines.filter({ hasText: BOOTED }).first().waitFor({ state: 'hidden' })
  for (const [command, answer] of COMMANDS) {
    await page.keyboard.type(`${command}\n`)
    await lines.filter({ hasText: answer }).first().waitFor()
  }
}

const OPERATORS: readonly Picture[] = [
  { name: 'operators', path: '/dashboard' },
  { name: 'nodes', path: '/nodes' },
]
const picturesOf = (restarted: string, other: string): readonly Picture[] => [
  { name: 'dashboard', path: '/dashboard' },
  { name: 'servers', path: '/servers' },
  { name: 'server', path: `/servers/${restarted}` },
  { name: 'console', path: `/servers/${other}?tab=console`, theme: 'dark', act: typeAtPrompt },
  { name: 'new-server', path: '/servers/new' },
  { name: 'network', path: '/networks' },
  { name: 'audit', path: '/audit' },
  { name: 'billing', path: '/settings/billing' },
]

answerHelp(import.meta.filename)
await rm(FOLDER, { recursive: true, force: true })
await mkdir(FOLDER, { recursive: true })
const data = await mkdtemp(join(tmpdir(), 'svccloud-pictures-'))
const flags = ['--hypervisor', 'qemu', '--network', 'user', '--fake-payments']
const product = await Product.start({ data, flags, hasPortal: true, warnings: [/./] })
const browser = await launch()

async function take(url: string, { cookies }: Visitor, pictures: readonly Picture[]): Promise<void> {
  for (const { name, path, theme = 'light', act } of pictures) {
    const context = await browser.newContext({ baseURL: url, colorScheme: theme, viewport: SIZE })
    context.setDefaultTimeout(BOOT_MILLISECONDS)
    await context.addCookies(cookies.map((cookie) => ({ ...cookie, url })))
    const page = await context.newPage()
    await page.goto(path)
    await act?.(page)
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
  await take(endpoints.api_url, person, picturesOf(body.items[1]?.id ?? '', body.items[0]?.id ?? ''))
  const [operations, finance] = await Promise.all(
    (['operations', 'finance'] as const).map((role) => newStaff({ endpoints, data }, role)),
  )
  if (operations === undefined || finance === undefined) throw new Error('no staff')
  await ask(person, finance)
  await take(endpoints.operator_url, operations, OPERATORS)
} finally {
  await browser.close()
  await clearAway(product, data)
}
