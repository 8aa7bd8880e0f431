/** Decides which test files need not run: those of the opt-in tiers whose inputs are the same as when they were green.
 *  Inputs outside the repository count too: the machine's programs and how a tier runs. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { ENGINES, type Tier, userDescription } from '../tiers.ts'
import { closureOf, inputsDigest, openTree, type Tree } from './inputs.ts'
import { REACHES } from './reaches.ts'
import {
  type Choice,
  choose,
  formatRecord,
  parseRecord,
  type Record,
  RECORD_FILE,
  type Shown,
  updated,
} from './record.ts'
import type { Report } from './tally.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')

/** The common inputs of all test files: the versions of all packages, and the code that loads the files. */
export const ALWAYS: readonly string[] = [
  'package-lock.json',
  'services/package.json',
  'tsconfig.json',
  '.npmrc',
  'vitest.config.ts',
]

const printed = (program: string, ...flags: string[]): Promise<string> =>
  run(program, flags, { cwd: ROOT }).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  )

/** The versions of the programs that tests run against and that come with the machine. The versions of built programs
 *  are in the repository. */
async function versionsOfMachine(): Promise<string> {
  // It fails for missing ones, and prints the others.
  const packages = await run('dpkg-query', [
    '-W',
    '-f',
    '${db:Status-Abbrev} ${Package} ${Version}\\n',
    ...ENGINES,
  ]).then(
    ({ stdout }) => stdout,
    (failure: unknown) => (failure instanceof Error && 'stdout' in failure ? String(failure.stdout) : ''),
  )
  const installed = packages.split('\n').filter((line) => line.startsWith('ii'))
  return [
    ...installed.toSorted(),
    await printed('go', 'env', 'GOVERSION'),
    await printed('uname', '-sm'),
    userDescription(),
  ].join('\n')
}

/** The files of a tier, by their paths from the root. */
export async function filesOf({ include, exclude }: Pick<Tier, 'include' | 'exclude'>): Promise<readonly string[]> {
  const files: string[] = []
  for await (const file of glob([...include], { cwd: ROOT, exclude: [...exclude] })) files.push(file)
  return files.toSorted()
}

/** How the tier runs its files, as far as that can affect their outcome. */
const runOf = ({ setup, isIsolated, testTimeoutMilliseconds }: Tier): string =>
  JSON.stringify({ setup, isIsolated, testTimeoutMilliseconds })

function digestsOf(tree: Tree, tier: Tier, files: readonly string[], versions: string): ReadonlyMap<string, string> {
  const others = [runOf(tier), versions]
  const starts = tier.setup === undefined ? [] : [tier.setup]
  return new Map(
    files.map((file) => {
      const closure = closureOf(tree, [file, ...starts], REACHES)
      return [file, inputsDigest(tree, new Set([...closure, ...ALWAYS]), others)]
    }),
  )
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A file is green when each of its tests ran and passed: a skipped test proves nothing. */
const isGreen = ({ status, assertionResults }: Report['testResults'][number]): boolean =>
  status === 'passed' && assertionResults.length > 0 && assertionResults.every((test) => test.status === 'passed')

/** How long each file took. The report leaves out what comes before the first test: it is shared out among the files,
 *  by what the workers spent together. */
function secondsOf(
  { testResults }: Report,
  workersMilliseconds: number,
): (result: Report['testResults'][number]) => number {
  const tests = testResults.reduce((sum, { startTime, endTime }) => sum + endTime - startTime, 0)
  const rest = Math.max(0, workersMilliseconds - tests) / Math.max(1, testResults.length)
  return ({ startTime, endTime }) => Math.max(1, Math.round((endTime - startTime + rest) / 1000))
}

function readRecord(): Record {
  const path = join(ROOT, RECORD_FILE)
  return parseRecord(existsSync(path) ? readFileSync(path, 'utf8') : '')
}

export class Unchanged {
  readonly #versions: string
  readonly #commit: string

  private constructor(versions: string, commit: string) {
    this.#versions = versions
    this.#commit = commit
  }

  /** Undefined when there is no git to say what belongs to the repository: then everything runs. */
  static async open(): Promise<Unchanged | undefined> {
    const commit = await printed('git', 'rev-parse', 'HEAD')
    return commit === '' ? undefined : new Unchanged(await versionsOfMachine(), commit)
  }

  /** The files of the tier to run. */
  async choose(tier: Tier): Promise<readonly Choice[]> {
    const digests = await this.#digests(tier)
    const files = [...digests].map(([file, digest]) => ({ file, digest, nameHash: hashOf(file) }))
    return choose(files, readRecord(), this.#commit)
  }

  /** Observes a run of the tier. The returned function takes its report and the time that its workers had together, and
   *  records the results; not for files whose inputs have changed meanwhile. */
  async watch(tier: Tier): Promise<(report: Report, workersMilliseconds: number) => Promise<void>> {
    const before = await this.#digests(tier)
    return async (report, workersMilliseconds) => {
      const times = secondsOf(report, workersMilliseconds)
      const after = await this.#digests(tier)
      const shown = report.testResults.flatMap((result): readonly Shown[] => {
        const file = relative(ROOT, result.name)
        const digest = before.get(file)
        return digest === undefined || digest !== after.get(file)
          ? []
          : [{ file, digest, isGreen: isGreen(result), seconds: times(result) }]
      })
      const { files } = openTree(ROOT)
      // Read and written at once: background tiers end at any time.
      const next = updated(readRecord(), shown, this.#commit.slice(0, COMMIT_LENGTH), files)
      writeFileSync(join(ROOT, RECORD_FILE), formatRecord(next))
    }
  }

  async #digests(tier: Tier): Promise<ReadonlyMap<string, string>> {
    return digestsOf(openTree(ROOT), tier, await filesOf(tier), this.#versions)
  }
}

const COMMIT_LENGTH = 12
