/** The README's commands, run as they are written: only the address of the API is another one. */
import { execFile } from 'node:child_process'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isBuilt, toolPath } from '../../tools/cluster/build.ts'
import { commandsOf, isAnyMissing, ROOT } from '../docs/blocks.ts'
import { until } from '../eventually.ts'
import { newFolder, type Product } from './product.ts'

const run = promisify(execFile)

const missing = await isAnyMissing('curl', 'jq', 'ssh', 'ssh-keygen')
const hasKubectl = await isBuilt('kubectl')

/** Tests of the product that runs. */
export function readmeTests(running: () => Product): void {
  let folder: string

  beforeAll(async () => {
    folder = await newFolder()
    await symlink(running().data, join(folder, '.svccloud'))
    await mkdir(join(folder, 'bin'))
    await symlink(join(ROOT, 'cli/svccloud.js'), join(folder, 'bin/svccloud'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it.runIf(!missing)('takes a newcomer from nothing to a server and back', async () => {
    const blocks = (await commandsOf('README.md'))
      .map(({ text }) => text)
      .filter((block) => hasKubectl || !block.includes('kubectl'))
    const script = blocks.join('\n').replaceAll('http://127.0.0.1:8080', running().endpoints.api_url)
    const { stdout } = await run('bash', ['-eu', '-c', script], {
      cwd: folder,
      env: {
        ...process.env,
        PATH: `${join(folder, 'bin')}:${dirname(toolPath('kubectl'))}:${process.env['PATH']}`,
        XDG_CONFIG_HOME: folder,
        SVCCLOUD_URL: running().endpoints.api_url,
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
      () => running().leftovers(),
      (left) => left.length === 0,
    )
  })
}
