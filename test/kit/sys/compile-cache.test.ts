/** What Node compiled is kept, and not where others could have written it. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { COMPILE_CACHE } from '../../../kit/sys/compile-cache.js'
import { environment, nodeBinary } from '../../../kit/sys/process.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../../..')
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-compiled-'))
  const say = `process.on('exit', () => console.log('kept in ' + require('node:module').getCompileCacheDir()))`
  await writeFile(join(folder, 'say.cjs'), say)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test.each([
  ['cli/svccloud.js', '--version'],
  ['embedded/start.js', '--help'],
])('%s keeps what Node compiled in the checkout', async (...line) => {
  const { NODE_COMPILE_CACHE: _given, ...env } = environment()
  const { stdout } = await run(nodeBinary(), ['--require', join(folder, 'say.cjs'), ...line], { cwd: ROOT, env })
  expect(stdout).toContain(`kept in ${COMPILE_CACHE}/`)
})
