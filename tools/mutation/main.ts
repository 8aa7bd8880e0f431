/** Measures the tests: makes small changes to the source, one at a time, and counts those that a test detects. `npm run
 *  test:mutation` judges the default targets, `npm run test:mutation -- domain db/audit` files or folders. Works in
 *  copies of the tree. Results are remembered for as long as the source and its tests stay the same, so a stopped run
 *  continues where it was. The score and the survivors are written to `test/mutation/score.json`. */
import { execFile, fork, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFile, copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { systemClock } from '../../kit/sys/clock.ts'
import { answerHelp } from '../../kit/sys/help.ts'
import { printLine, processArguments, setExitCode, signalProcess, stopSignal } from '../../kit/sys/process.ts'
import { type Mutant, mutantsOf, mutated } from './operators.ts'
import { readImports, testsFor } from './related.ts'
import {
  type FileScore,
  isKilled,
  type Judged,
  mutantKey,
  mergeScores,
  type Outcome,
  type Score,
  scoreOfFile,
} from './score.ts'
import type { Job, MutantVerdict } from './worker.ts'

const ROOT = join(import.meta.dirname, '../..')
const SCORE_FILE = join(ROOT, 'test/mutation/score.json')
const PROGRESS_FILE = join(ROOT, 'test-results/mutation.ndjson')
/** Folders and files whose rules are pure or whose mistakes are expensive. */
const TARGETS = [
  'domain/',
  'kit/http/',
  'kit/reconcile/',
  'db/',
  'controllers/nouns/node/plan.ts',
  'controllers/nouns/public-pool/plan.ts',
  'controllers/nouns/server/plan.ts',
  'controllers/nouns/storage/plan.ts',
  'agents/node/instance/plan.ts',
  'agents/node/volume/plan.ts',
]
/** Code that runs once and is not changed afterwards. */
const LEFT_OUT = ['db/migrations/', 'db/main.ts']
/** The tiers whose tests are run; those with a database only for the files of `db/`. */
const PROJECTS = ['unit', 'database']
const TEST_NAME =
  /^test\/(?!sim\/|mutation\/).*(?<!\.(?:kubectl|(?:qemu|e2e|network)(?:-long)?|fencing|endurance|cluster))\.test\.ts$/
/** A test that takes longer alone is not run for mutants. */
const TEST_MILLISECONDS_MAXIMUM = 6_000
/** A run that takes several times its usual time counts as hanging. */
const PATIENCE = { factor: 4, milliseconds: 10_000 }
const START_MILLISECONDS_MAXIMUM = 60_000

interface Target {
  readonly file: string
  readonly source: string
  readonly tests: readonly string[]
  readonly mutants: readonly { readonly mutant: Mutant; readonly key: string }[]
}

const run = promisify(execFile)

/** Every file of the tree that git tracks or would track. */
async function listFiles(): Promise<string[]> {
  const { stdout } = await run('git', ['ls-files', '-co', '--exclude-standard'], { cwd: ROOT, maxBuffer: 2 ** 24 })
  return stdout.split('\n').filter((file) => file !== '')
}

async function copyTree(files: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-mutation-'))
  for (const parent of new Set(files.map(dirname))) await mkdir(join(folder, parent), { recursive: true })
  // a file that was removed but not committed yet is not in the tree
  for (const file of files) await copyFile(join(ROOT, file), join(folder, file)).catch(() => {})
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** A worker with a copy of the tree; it is killed and restarted when a run hangs. */
class Bench {
  readonly folder: string
  #child: ChildProcess | undefined

  constructor(folder: string) {
    this.folder = folder
  }

  async #started(): Promise<ChildProcess> {
    if (this.#child !== undefined) return this.#child
    const child = fork(join(import.meta.dirname, 'worker.ts'), [this.folder, ...PROJECTS], {
      cwd: this.folder,
      detached: true, // a separate process group, so that its children end with it
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#child = child
    if ((await answerOf(child, START_MILLISECONDS_MAXIMUM)) === undefined) throw new Error('a worker did not start')
    return child
  }

  /** Undefined when the run did not end in time. */
  async judge(job: Job, milliseconds: number): Promise<MutantVerdict | undefined> {
    const child = await this.#started()
    child.send(job)
    const verdict = await answerOf(child, milliseconds)
    if (verdict !== undefined) return verdict as MutantVerdict // a worker answers jobs with verdicts
    this.stop()
    if (job.change !== undefined) await writeFile(join(this.folder, job.change.file), job.change.original)
    return undefined
  }

  stop(): void {
    if (this.#child?.pid !== undefined) signalProcess(-this.#child.pid, 'SIGKILL')
    this.#child = undefined
  }

  async close(): Promise<void> {
    this.stop()
    await rm(this.folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** The next message; undefined when none arrives in time or the process ends. */
function answerOf(child: ChildProcess, milliseconds: number): Promise<unknown> {
  return new Promise((resolve) => {
    const end = (message?: unknown) => {
      cancel()
      child.off('message', end)
      child.off('exit', ended)
      resolve(message)
    }
    const ended = () => end()
    const cancel = systemClock.after(milliseconds, ended)
    child.once('message', end)
    child.once('exit', ended)
  })
}

/** The duration of each test on the unchanged source; without those that fail or take too long. */
async function measureTests(bench: Bench, tests: readonly string[]): Promise<Map<string, number>> {
  const usual = new Map<string, number>()
  for (const test of tests) {
    const verdict = await bench.judge({ tests: [test] }, 4 * TEST_MILLISECONDS_MAXIMUM)
    const isUsable = verdict?.killedBy === undefined && (verdict?.milliseconds ?? Infinity) <= TEST_MILLISECONDS_MAXIMUM
    if (verdict !== undefined && isUsable) usual.set(test, verdict.milliseconds)
    else printLine(`not used: ${test} ${verdict?.killedBy === undefined ? 'takes too long' : 'fails'}`)
  }
  return usual
}

async function readProgress(): Promise<Map<string, Outcome>> {
  const text = await readFile(PROGRESS_FILE, 'utf8').catch(() => '')
  // written below, line by line
  const lines = text
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as readonly [string, Outcome]]))
  return new Map(lines)
}

async function openTargets(paths: readonly string[], files: readonly string[]): Promise<readonly Target[]> {
  const sources = files.filter((file) => file.endsWith('.ts'))
  const imports = await readImports(ROOT, sources)
  const tests = sources.filter((file) => TEST_NAME.test(file))
  const isWanted = (file: string) =>
    paths.some((path) => file === path || file.startsWith(path.endsWith('/') ? path : `${path}/`)) &&
    !LEFT_OUT.some((path) => file.startsWith(path)) &&
    !file.startsWith('test/')
  return await Promise.all(
    sources.filter(isWanted).map(async (file) => {
      const source = await readFile(join(ROOT, file), 'utf8')
      const near = file.startsWith('db/') ? tests : tests.filter((test) => !test.includes('.database.'))
      const related = testsFor(file, near, imports)
      const texts = await Promise.all(related.map((test) => readFile(join(ROOT, test), 'utf8')))
      const mutants = mutantsOf(file, source).map((mutant) => ({
        mutant,
        key: mutantKey(mutant, source, texts.join('\0')),
      }))
      return { file, source, tests: related, mutants }
    }),
  )
}

/** An order that depends on the seed alone. */
const placeOf = (seed: number, key: string): string => createHash('sha256').update(`${seed} ${key}`).digest('hex')

interface Options {
  readonly paths: readonly string[]
  readonly seed: number
  readonly workers: number
  /** Maximum number of judged mutants, chosen by the seed. */
  readonly sample: number
}

async function judgeAll(targets: readonly Target[], options: Options, stop: AbortSignal): Promise<Map<string, Judged>> {
  const known = await readProgress()
  const all = targets
    .flatMap((target) => target.mutants.map((each) => ({ ...each, target })))
    .map((each) => ({ ...each, place: placeOf(options.seed, each.key) }))
    .sort((a, b) => (a.place < b.place ? -1 : 1))
    .slice(0, options.sample)
  const judged = new Map<string, Judged>()
  const note = (mutant: Mutant, key: string, outcome: Outcome) => void judged.set(key, { mutant, key, outcome })
  const open = all.filter(({ mutant, key }) => {
    const outcome = known.get(key)
    if (outcome !== undefined) note(mutant, key, outcome)
    return outcome === undefined
  })
  printLine(`${all.length} mutants in ${targets.length} files, ${open.length} to be judged`)
  if (open.length === 0) return judged
  await mkdir(dirname(PROGRESS_FILE), { recursive: true })
  const files = await listFiles()
  const benches = await Promise.all(
    Array.from({ length: options.workers }, async () => new Bench(await copyTree(files))),
  )
  stop.addEventListener('abort', () => benches.forEach((bench) => bench.stop()), { once: true })
  try {
    const [first] = benches
    const usual = await measureTests(first!, [...new Set(open.flatMap(({ target }) => target.tests))]) // at least one
    const queue = open.values()
    let done = 0
    const work = async (bench: Bench) => {
      for (const { mutant, key, target } of queue) {
        if (stop.aborted) return
        const tests = target.tests.filter((test) => usual.has(test))
        const outcome = tests.length === 0 ? 'untested' : await judgeOne(bench, mutant, target.source, tests, usual)
        if (stop.aborted) return // an interrupted run proves nothing
        note(mutant, key, outcome)
        await appendFile(PROGRESS_FILE, `${JSON.stringify([key, outcome])}\n`)
        done += 1
        if (!isKilled(outcome)) printLine(`${outcome}: ${mutant.file}:${mutant.line} ${mutant.operator}`)
        if (done % 50 === 0) printLine(`${done} of ${open.length}`)
      }
    }
    await Promise.all(benches.map(work))
  } finally {
    await Promise.all(benches.map((bench) => bench.close()))
  }
  return judged
}

async function judgeOne(
  bench: Bench,
  mutant: Mutant,
  source: string,
  tests: readonly string[],
  usual: ReadonlyMap<string, number>,
): Promise<Outcome> {
  const expected = tests.reduce((sum, test) => sum + (usual.get(test) ?? 0), 0)
  const change = { file: mutant.file, original: source, mutated: mutated(source, mutant) }
  const verdict = await bench.judge({ change, tests }, expected * PATIENCE.factor + PATIENCE.milliseconds)
  return verdict === undefined ? 'timeout' : verdict.killedBy === undefined ? 'survived' : 'killed'
}

async function main(options: Options, stop: AbortSignal): Promise<Score> {
  const files = await listFiles()
  const targets = await openTargets(options.paths, files)
  const judged = await judgeAll(targets, options, stop)
  const scores: Record<string, FileScore> = {}
  for (const { file, source, mutants } of targets) {
    const own = mutants.flatMap(({ key }) => judged.get(key) ?? [])
    if (own.length > 0) scores[file] = scoreOfFile(source, mutants.length, own)
  }
  const before = await readFile(SCORE_FILE, 'utf8').then(
    (text) => JSON.parse(text) as Score, // written below
    () => undefined,
  )
  const score = mergeScores(before, scores, { seed: options.seed, exists: (file) => files.includes(file) })
  await mkdir(dirname(SCORE_FILE), { recursive: true })
  await writeFile(SCORE_FILE, `${JSON.stringify(score, null, 2)}\n`)
  for (const [file, { judged: count, killed }] of Object.entries(scores)) printLine(`${file}: ${killed} of ${count}`)
  return score
}

if (import.meta.main) {
  answerHelp(import.meta.filename)
  const { values, positionals } = parseArgs({
    args: [...processArguments()],
    allowPositionals: true,
    options: {
      seed: { type: 'string', default: '1' },
      workers: { type: 'string', default: '1' },
      sample: { type: 'string', default: 'Infinity' },
    },
  })
  const { percent, judged, killed } = await main(
    {
      paths: positionals.length > 0 ? positionals : TARGETS,
      seed: Number(values.seed),
      workers: Number(values.workers),
      sample: Number(values.sample),
    },
    stopSignal(),
  )
  printLine(`${killed} of ${judged} mutants noticed: ${percent} %`)
  setExitCode(0)
}
