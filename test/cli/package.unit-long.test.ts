/** The package that `npm pack` makes runs with the dependencies that it names, which are none of the services'. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodeBinary } from '../../kit/sys/process.ts'
import { VERSION } from '../../domain/version.ts'

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
  // one thread: several check the same types again, which takes twice as much of the processor
  for (const part of ['cli', 'client'])
    await run(nodeBinary(), [
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      '--singleThreaded',
      '-p',
      join(ROOT, part),
      '--outDir',
      join(folder, part === 'cli' ? 'dist' : 'dist/client'),
    ])
  for (const file of [
    'package.json',
    'README.md',
    'LICENSE',
    ...manifest.files.filter((name) => !/^!|^dist\/$/.test(name)),
  ])
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

/** The packages that the package needs, theirs too. */
async function closureOf(names: readonly string[], found: ReadonlySet<string> = new Set()): Promise<readonly string[]> {
  const all = new Set([...found, ...names])
  for (const name of names) {
    if (found.has(name)) continue
    const text = await readFile(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')
    const { dependencies = {} } = JSON.parse(text) as { dependencies?: Record<string, string> } // npm's own format
    for (const each of await closureOf(Object.keys(dependencies), all)) all.add(each)
  }
  return [...all]
}

test('packs, installs into an empty folder and runs there, with what it names and nothing else', async () => {
  const bare = await mkdtemp(join(tmpdir(), 'svccloud-bare-'))
  try {
    const needed = await closureOf(Object.keys(manifest.dependencies))
    const sources = [folder, ...needed.map((name) => join(ROOT, 'node_modules', name))]
    // npm of the machine, as whoever installs it has; what is installed is packed again, so that nothing is fetched
    const npm = (...line: string[]) => run('npm', [...line, '--ignore-scripts', '--json'], { cwd: bare })
    const { stdout } = await npm('pack', ...sources)
    const packed = JSON.parse(stdout) as readonly { name: string; filename: string; files: { path: string }[] }[]
    const files = packed.find(({ name }) => name === 'svccloud')?.files.map(({ path }) => path) ?? []
    expect(files).toEqual(expect.arrayContaining(['package.json', 'LICENSE', 'README.md', 'cli/svccloud.js']))
    expect(files.filter((path) => /^(test|apiserver|controllers|agents|embedded)\/|(?<!\.d)\.ts$/.test(path))).toEqual(
      [],
    )

    await writeFile(join(bare, 'package.json'), '{}')
    await npm('install', '--offline', ...packed.map(({ filename }) => `./${filename}`))
    const { packages } = JSON.parse(await readFile(join(bare, 'node_modules/.package-lock.json'), 'utf8')) as {
      packages: Record<string, unknown>
    } // npm's own format
    expect(Object.keys(packages).sort()).toEqual(['svccloud', ...needed].map((name) => `node_modules/${name}`).sort())
    const svccloud = async (...line: string[]) => (await run(join(bare, 'node_modules/.bin/svccloud'), line)).stdout
    expect(await svccloud('--version')).toBe(`svccloud ${VERSION}\n`)
    expect(await svccloud('help')).toContain('server')
    const program = `import { createClient } from 'svccloud/client'; console.log(typeof createClient)`
    const client = await run('node', ['--input-type=module', '--eval', program], { cwd: bare })
    expect(client.stdout).toBe('function\n')
  } finally {
    await rm(bare, { recursive: true, force: true })
  }
})

test('names three small dependencies', () => {
  expect(Object.keys(manifest.dependencies)).toEqual(['openapi-fetch', 'yaml', 'zod'])
})
