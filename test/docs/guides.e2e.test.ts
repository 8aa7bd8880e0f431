/** The guides' commands, run as they are written against the running product; its guests are simulated. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import { Customer, PASSWORD } from '../e2e/customer.ts'
import { eventually, Product } from '../e2e/product.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
/** Blocks marked `sh` are run, one after another; others only show something. */
const shellBlocks = (markdown: string): readonly string[] => [...markdown.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '')

const isMissing = async (program: string) => run('/bin/sh', ['-c', `command -v ${program}`]).then(() => false, () => true)
const missing = (await Promise.all(['curl', 'jq', 'ssh-keygen'].map(isMissing))).some(Boolean)

let folder: string
let product: Product

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-guides-'))
  product = await Product.start({ data: join(folder, 'data'), flags: ['--hypervisor', 'simulated'] })
  await mkdir(join(folder, 'bin'))
  await symlink(join(ROOT, 'cli/svccloud.js'), join(folder, 'bin/svccloud'))
})
afterAll(async () => {
  await product?.stop()
  await rm(folder, { recursive: true, force: true })
})

test.runIf(!missing).each([['getting-started.md', 6], ['rest.md', 5], ['cli.md', 6], ['mcp.md', 2]] as const)('%s says what works', async (guide, blocksMinimum) => {
  const blocks = shellBlocks(await readFile(join(ROOT, 'docs', guide), 'utf8'))
  expect(blocks.length).toBeGreaterThanOrEqual(blocksMinimum)
  const email = `${guide.replace('.md', '')}@example.com`
  const customer = await Customer.signUp(() => product, email)
  const work = join(folder, guide)
  await mkdir(work)
  await writeFile(join(work, 'guide.sh'), `set -o pipefail\n${blocks.join('\n')}`)
  const { PATH, LANG } = environment()
  await run('bash', ['-eux', 'guide.sh'], {
    cwd: work, timeout: 240_000, maxBuffer: 16 * 1024 * 1024,
    env: { PATH: `${join(folder, 'bin')}${delimiter}${PATH}`, LANG, HOME: work, API: product.endpoints.api_url, TOKEN: customer.token, EMAIL: email, SVCCLOUD_PASSWORD: PASSWORD },
  })
  await eventually('the guide to leave nothing running', async () => (await customer.request<{ items: unknown[] }>('GET', '/v1/servers')).body.items.length === 0, 60_000)
})
