/** Every script of the repository answers `--help` with how it is called, and does nothing else. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { nodeBinary } from '../../kit/sys/process.ts'

const ROOT = join(import.meta.dirname, '../..')
const PATIENCE_MILLISECONDS = 120_000
/** A script that does not answer is killed before the test ends. */
const RUN_MILLISECONDS = 100_000
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>
}
/** Those that npm runs, and those that are started by their path. */
const files = new Set([
  ...Object.values(scripts).flatMap((line) => [...line.matchAll(/\bnode (\S+\.[jt]s)/g)].map(([, file = '']) => file)),
  ...['tools', 'bench', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
      .map((name) => join(folder, name))
      .filter((name) => isScript(readFileSync(join(ROOT, name), 'utf8'))),
  ),
])

/** What another process forks talks to that process, and has no help. */
function isScript(source: string): boolean {
  return (
    /^(?:answerHelp\(|if \(import\.meta\.main\))/m.test(source) && !/\b(?:onParentMessage|sendToParent)\(/.test(source)
  )
}

test('npm and people start these', () => {
  expect([...files]).toEqual(expect.arrayContaining(['test/sim/main.ts', 'tools/tidy.ts', 'bench/money.ts']))
})

test.each([...files].toSorted())(
  '%s',
  async (file) => {
    // A failure of the program rejects.
    const { stdout } = await promisify(execFile)(nodeBinary(), [join(ROOT, file), '--help'], {
      cwd: ROOT,
      timeout: RUN_MILLISECONDS,
    })
    expect(stdout).toMatch(/\b(?:npm|node|usage)\b/i)
    expect(stdout).not.toMatch(/^ *\*/m)
  },
  PATIENCE_MILLISECONDS,
)
