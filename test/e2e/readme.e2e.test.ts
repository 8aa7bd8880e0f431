/** The README's commands, run as they are written: only the address of the API is another one. */
import { execFile } from 'node:child_process'
import { readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isBuilt, toolPath } from '../../tools/cluster/build.ts'
import { clearAway, eventually, newFolder, Product } from './product.ts'

const run = promisify(execFile)
const README = join(import.meta.dirname, '../../README.md')

/** The blocks that a newcomer types into a shell, in order. */
const shellBlocks = (markdown: string): readonly string[] => [...markdown.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '')

const isMissing = async (program: string) => run('/bin/sh', ['-c', `command -v ${program}`]).then(() => false, () => true)
const missing = (await Promise.all(['curl', 'jq', 'ssh-keygen', 'base64'].map(isMissing))).some(Boolean)

const hasKubectl = await isBuilt('kubectl')

let folder: string
let product: Product

beforeAll(async () => {
  folder = await newFolder()
  const data = join(folder, 'data')
  product = await Product.start({ data, flags: ['--hypervisor', 'qemu'] })
  await symlink(data, join(folder, '.svccloud'))
})
afterAll(() => clearAway(product, folder))

it.runIf(!missing)('takes a newcomer from nothing to a server and back', async () => {
  const written = shellBlocks(await readFile(README, 'utf8'))
  expect(written.length).toBeGreaterThanOrEqual(6)
  const blocks = written.filter((block) => hasKubectl || !block.includes('kubectl'))
  const script = blocks.join('\n').replaceAll('http://127.0.0.1:8080', product.endpoints.api_url)
  const { stdout } = await run('bash', ['-eu', '-c', script], { cwd: folder, env: { ...process.env, PATH: `${dirname(toolPath('kubectl'))}:${process.env['PATH']}` }, timeout: 280_000, maxBuffer: 16 * 1024 * 1024 })
  expect(stdout).toMatch(/^hello\r?$/m) // what the guest answered to `hostname`
  expect(stdout).toMatch(/server\.delete/) // the audit log
  await eventually('everything to be gone', async () => {
    const leftovers = await product.leftovers()
    if (leftovers.length > 0) throw new Error(leftovers.join('\n'))
    return true
  }, 120_000)
})
