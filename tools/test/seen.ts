/** Compares `reaches.ts` with reality: runs a test file under strace and prints the files of the repository that it,
 *  and every program that it starts, opened although they are not among the inputs of the file. `node
 *  tools/test/seen.ts FILE`; exits with 1 when there are any. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { answerHelp } from '../../kit/sys/help.ts'
import { nodeBinary, printLine, processArguments, setExitCode } from '../../kit/sys/process.ts'
import { tierOf } from '../tiers.ts'
import { closureOf, openTree } from './inputs.ts'
import { REACHES } from './reaches.ts'
import { ALWAYS } from './unchanged.ts'

const ROOT = join(import.meta.dirname, '../..')

answerHelp(import.meta.filename)
const [file = ''] = processArguments()
const folder = mkdtempSync(join(tmpdir(), 'svccloud-seen-'))
try {
  const log = join(folder, 'log')
  const strace = ['-f', '-qq', '--seccomp-bpf', '-s', '0', '-e', 'trace=openat,open,execve', '-o', log]
  const vitest = [nodeBinary(), join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', join(ROOT, file)]
  spawnSync('strace', [...strace, ...vitest], { cwd: ROOT, stdio: 'inherit' })
  const tree = openTree(ROOT)
  // The settings of vitest load the runner's own files, which do not affect any test.
  const setup = tierOf(file)?.setup
  const inputs = closureOf(tree, [file, ...(setup === undefined ? [] : [setup]), ...ALWAYS], REACHES)
  const opened = [...readFileSync(log, 'utf8').matchAll(/(?:open(?:at)?|execve)\([^"]*"([^"]+)".* = \d+$/gm)]
  const paths = new Set(opened.map(([, path = '']) => (path.startsWith('/') ? relative(ROOT, path) : path)))
  const unseen = [...paths].filter((path) => tree.files.has(path) && !inputs.has(path)).toSorted()
  for (const path of unseen) printLine(path)
  setExitCode(unseen.length === 0 ? 0 : 1)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
