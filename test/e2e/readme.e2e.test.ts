/** The README's commands, run as they are written: only the address of the API is another one. */
import { execFile } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isBuilt, toolPath } from '../../tools/cluster/build.ts'
import { commandsOf, isAnyMissing, ROOT } from '../docs/blocks.ts'
import { until } from '../eventually.ts'
import { clearAway, newFolder, Product } from './product.ts'

const run = promisify(execFile)

const missing = await isAnyMissing('curl', 'jq', 'ssh', 'ssh-keygen')
const hasKubectl = await isBuilt('kubectl')

let folder: string
let product: Product

beforeAll(async () => {
  folder = await newFolder()
  const data = join(folder, 'data')
  product = await Product.start({ data, flags: ['--hypervisor', 'qemu'] })
  await symlink(data, join(folder, '.svccloud'))
  await mkdir(join(folder, 'bin'))
  await symlink(join(ROOT, 'cli/svccloud.js'), join(folder, 'bin/svccloud'))
})
afterAll(() => clearAway(product, folder))

it.runIf(!missing)('takes a newcomer from nothing to a server and back', async () => {
  const blocks = (await commandsOf('README.md'))
    .map(({ text }) => text)
    .filter((block) => hasKubectl || !block.includes('kubectl'))
  const script = blocks.join('\n').replaceAll('http://127.0.0.1:8080', product.endpoints.api_url)
  const { stdout } = await run('bash', ['-eu', '-c', script], {
    cwd: folder,
    env: {
      ...process.env,
      PATH: `${join(folder, 'bin')}:${dirname(toolPath('kubectl'))}:${process.env['PATH']}`,
      XDG_CONFIG_HOME: folder,
      SVCCLOUD_URL: product.endpoints.api_url,
      SVCCLOUD_PASSWORD: 'a long walk on the beach',
    },
    timeout: 280_000,
    maxBuffer: 16 * 1024 * 1024,
  })
  expect(stdout).toMatch(/^Linux hello /m) // what the guest answered to `uname -a` over SSH
  expect(stdout).toMatch(/^hello\r?$/m) // what it answered to `hostname` on its console
  expect(stdout).toMatch(/server\.delete/) // the audit log
  await until(
    'nothing to be left',
    () => product.leftovers(),
    (left) => left.length === 0,
  )
})
