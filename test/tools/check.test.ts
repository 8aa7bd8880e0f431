/** What `npm run check` finds besides the types: each program is run, as the check runs it, on a file with one fault.
 */
import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { nodeBinary } from '../../kit/sys/process.ts'

const ROOT = join(import.meta.dirname, '../..')
const Package = z.object({ scripts: z.object({ check: z.string() }) })
const Findings = z.object({ diagnostics: z.array(z.object({ filename: z.string(), code: z.string() })) })
const PROGRAMS = { biome: '@biomejs/biome/bin/biome', oxlint: 'oxlint/bin/oxlint' }
let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-check-'))
  await mkdir(join(folder, 'domain'))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  await Promise.all(
    ['.oxlintrc.json', 'biome.json', 'tsconfig.json'].map((name) => copyFile(join(ROOT, name), join(folder, name))),
  )
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** What the check's own command line of a program says of the files: its exit code and everything it prints. */
async function check(
  program: keyof typeof PROGRAMS,
  files: Readonly<Record<string, string>>,
  ...more: readonly string[]
) {
  const { scripts } = Package.parse(JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')))
  const command = scripts.check.split(' && ').find((line) => line.startsWith(`${program} `)) ?? ''
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, 'domain', name), text)
  const words = [join(ROOT, 'node_modules', PROGRAMS[program]), ...command.split(' ').slice(1), ...more]
  return new Promise<{ readonly code: number; readonly text: string }>((resolve) => {
    execFile(nodeBinary(), words, { cwd: folder }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : 1, text: stdout + stderr }),
    )
  })
}

it('finds code that is wider than 120 columns', async () => {
  const wide = `export const sum = ${Array.from({ length: 40 }, (_, index) => index).join(' + ')}\n`
  expect(wide.length).toBeGreaterThan(121)
  expect(await check('biome', { 'a.ts': wide })).toMatchObject({ code: 1, text: expect.stringContaining('a.ts') })
  expect(await check('biome', { 'a.ts': 'export const sum = 1\n' })).toMatchObject({ code: 0 })
})

const later = 'export const later = (): Promise<void> => Promise.resolve()\n'

/** One run for all of them: most of it is the start. By file: the rule, and what breaks it. */
const FAULTS: Readonly<Record<string, readonly [rule: string, text: string]>> = {
  'floating-promise.ts': ['no-floating-promises', `${later}later()\n`],
  'promise-as-condition.ts': ['no-misused-promises', `${later}if (later()) throw new Error('never')\n`],
  'unused.ts': ['no-unused-vars', 'const a = 1\n'],
  'forgotten-case.ts': [
    'switch-exhaustiveness-check',
    `export function f(side: 'left' | 'right'): void {\n  switch (side) {\n    case 'left':\n      return\n  }\n}\n`,
  ],
  'long-function.ts': ['max-lines-per-function', `export function f(): void {\n${'  f()\n'.repeat(69)}}\n`],
  // a circle of imports, also of types alone
  'a.ts': ['no-cycle', `import type { B } from './b.ts'\nexport interface A {\n  readonly b?: B\n}\n`],
  'b.ts': ['no-cycle', `import type { A } from './a.ts'\nexport interface B {\n  readonly a?: A\n}\n`],
  'well.ts': ['', `${later}await later()\n`],
}

it('finds what is wrong in each file, and nothing in what is well', async () => {
  const files = Object.fromEntries(Object.entries(FAULTS).map(([file, [, text]]) => [file, text]))
  const { code, text } = await check('oxlint', files, '--format=json')
  const { diagnostics } = Findings.parse(JSON.parse(text))
  const found = Map.groupBy(diagnostics, ({ filename }) => filename.replace(/^.*domain\//, ''))
  for (const [file, [rule]] of Object.entries(FAULTS))
    expect([file, found.get(file)?.map((each) => each.code) ?? []]).toEqual([
      file,
      rule === '' ? [] : [expect.stringContaining(`(${rule})`)],
    ])
  expect(code).toBe(1)
})

it('finds nothing where all is well', async () => {
  expect(await check('oxlint', { 'a.ts': `${later}await later()\n` })).toMatchObject({ code: 0 })
})
