/** Counts of what somebody new does: `npm run portal:tasks` starts the product with simulated guests, does each task in
 *  the browser and writes `docs/portal-tasks.md`. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answerHelp } from '../../../kit/sys/help.ts'
import { printLine } from '../../../kit/sys/process.ts'
import { Product } from '../../e2e/product.ts'
import { launch } from './kit/chromium.ts'
import { signUp } from './kit/person.ts'
import { doTasks, pageOf } from './kit/tasks.ts'

const FILE = join(import.meta.dirname, '../../../docs/portal-tasks.md')

answerHelp(import.meta.filename)
const data = await mkdtemp(join(tmpdir(), 'svccloud-tasks-'))
const flags = ['--hypervisor', 'simulated', '--network', 'user', '--fake-payments']
const product = await Product.start({ data, flags, hasPortal: true, warnings: [/./] })
const browser = await launch()
try {
  const { api_url: url } = product.endpoints
  const { cookies } = await signUp(product.endpoints)
  const context = await browser.newContext({ baseURL: url, locale: 'en-US', viewport: { width: 1360, height: 900 } })
  await context.addCookies(cookies.map((cookie) => ({ ...cookie, url })))
  await writeFile(FILE, pageOf(await doTasks(await context.newPage())))
  printLine(FILE)
} finally {
  await browser.close()
  await product.stop()
  await rm(data, { recursive: true, force: true })
}
