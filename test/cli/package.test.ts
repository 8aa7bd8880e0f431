/** The package that `npm pack` makes runs with the dependencies that it names, which are none of the services'. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodeBinary } from '../../kit/sys/process.ts'
import { VERSION } from '../../resources/version.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
  readonly files: readonly string[]
  readonly dependencies: Readonly<Record<string, string>>
} // our own file

let folder: string

/** Lays the package out as npm does, with links to the packages that it names and to nothing else. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-package-'))
  for (const part of ['cli', 'client'])
    await run(nodeBinary(), [
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      '-p',
      join(ROOT, part),
      '--outDir',
      join(folder, part === 'cli' ? 'dist' : 'dist/client'),
    ])
  for (const file of ['package.json', ...manifest.files.filter((name) => name !== 'dist/')])
    await cp(join(ROOT, file), join(folder, file), { recursive: true })
  await mkdir(join(folder, 'node_modules'))
  for (const name of Object.keys(manifest.dependencies))
    await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test('has the command', async () => {
  const svccloud = async (...line: string[]) =>
    (await run(nodeBinary(), [join(folder, 'cli/svccloud.js'), ...line], { cwd: folder })).stdout
  expect(await svccloud('--version')).toBe(`svccloud ${VERSION}\n`)
  expect(await svccloud('server', '--help')).toContain('Usage: svccloud server COMMAND')
})

test('has the client', async () => {
  const program =
    `import { createClient } from 'svccloud/client'; console.log(typeof createClient({ url: 'http://127.0.0.1:1', ` +
    `token: 'x' }).GET)`
  expect((await run(nodeBinary(), ['--input-type=module', '--eval', program], { cwd: folder })).stdout).toBe(
    'function\n',
  )
})

test('names three small dependencies', () => {
  expect(Object.keys(manifest.dependencies)).toEqual(['openapi-fetch', 'yaml', 'zod'])
})
