/** Keeps a program running: restarts it when it exits, and kills it when this process exits for any reason. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { type BackoffLimits, backoffMilliseconds } from '../../kit/sys/backoff.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { environment } from '../../kit/sys/process.ts'
import type { Random } from '../../kit/sys/random.ts'
import { OUTAGE_MILLISECONDS, Outages } from '../../kit/sys/outages.ts'

export interface DaemonParts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Stops all of them. */
  readonly signal: AbortSignal
}

export interface DaemonOptions {
  readonly name: string
  /** Must be bound to this process (`tied`), wherever it runs. */
  readonly command: readonly string[]
  /** Working directory. */
  readonly folder: string
  readonly environment?: Readonly<Record<string, string>>
  /** Gives the program a channel to this process for passing handles. */
  readonly hasChannel?: boolean
  /** Called with each line of its output. When absent, the lines go to the log of this process. */
  readonly onLine?: (line: string) => void
  /** File for its output, instead of the log of this process. The caller limits its size. */
  readonly logFile?: string
  /** Its standard input and output are pipes to this process; called at every start. */
  readonly onPipes?: (input: Writable, output: Readable) => void
  /** Descriptors of this process that it inherits, from 3 on. */
  readonly handed?: readonly number[]
  /** Called after every start. When it fails, the program is killed and restarted. */
  readonly whenStarted?: () => Promise<void>
}

export interface Daemon {
  /** The current process. */
  child(): ChildProcess | undefined
  /** Resolves when the program runs and `whenStarted` is done. */
  readonly isReady: Promise<void>
  /** Resolves when the program has exited, after the signal. */
  readonly ended: Promise<void>
}

const LIMITS: BackoffLimits = { baseMilliseconds: 250, maximumMilliseconds: 5_000 }
const HEALTHY_MILLISECONDS = 30_000
const PATIENCE_MILLISECONDS = 5_000

/** The kernel kills the program when this process exits. Entering a user namespace clears that setting, so it must come
 *  later in the command. */
export const tied = (command: readonly string[]): readonly string[] => [
  'setpriv',
  '--pdeathsig',
  'KILL',
  '--',
  ...command,
]

const nothing = async () => {}

export function startDaemon(options: DaemonOptions, parts: DaemonParts): Daemon {
  const ready = Promise.withResolvers<void>()
  let current: ChildProcess | undefined
  const keepRunning = async () => {
    const { clock, random, log, signal } = parts
    const outages = new Outages({ log, clock }, 'a program has ended')
    for (let failures = 0; !signal.aborted; ) {
      const startedAt = clock.monotonicMilliseconds()
      const { child, over } = start(options)
      current = child
      const end = () => {
        child.kill('SIGTERM')
        clock.after(PATIENCE_MILLISECONDS, () => child.kill('SIGKILL'))
      }
      signal.addEventListener('abort', end, { once: true })
      void (options.whenStarted ?? nothing)().then(ready.resolve, (error: unknown) => {
        if (signal.aborted) return
        log.info('a program is not set up', { program: options.name, error })
        child.kill('SIGKILL')
      })
      const how = await over
      signal.removeEventListener('abort', end)
      current = undefined
      if (signal.aborted) return
      const ranMilliseconds = clock.monotonicMilliseconds() - startedAt
      failures = ranMilliseconds > HEALTHY_MILLISECONDS ? 0 : failures + 1
      if (ranMilliseconds > OUTAGE_MILLISECONDS) outages.over()
      outages.failed(how, { program: options.name })
      await clock.sleep(backoffMilliseconds(failures, LIMITS, random), signal)
    }
  }
  return { child: () => current, isReady: ready.promise, ended: keepRunning() }
}

function start({ command, folder, environment: own = {}, ...options }: DaemonOptions) {
  const { hasChannel, onLine, onPipes, handed = [], logFile } = options
  const [program = '', ...words] = command
  const log = logFile === undefined ? undefined : openLog(logFile)
  const child = spawn(program, words, {
    cwd: folder,
    stdio: [
      onPipes === undefined ? 'ignore' : 'pipe',
      onLine === undefined && onPipes === undefined ? (log ?? 'inherit') : 'pipe',
      log ?? 'inherit',
      ...handed,
      ...(hasChannel === true ? (['ipc'] as const) : []),
    ],
    env: { PATH: environment()['PATH'], ...own },
  })
  if (log !== undefined) closeSync(log)
  if (onLine !== undefined && child.stdout !== null) createInterface({ input: child.stdout }).on('line', onLine)
  if (onPipes !== undefined && child.stdin !== null && child.stdout !== null) {
    child.stdin.on('error', () => {}) // the program has exited; callers that wait for its answers notice that
    onPipes(child.stdin, child.stdout)
  }
  const over = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
  return { child, over }
}

/** Undefined when the file cannot be opened. Then output goes to the log of this process. */
function openLog(file: string): number | undefined {
  try {
    return openSync(file, 'a', 0o600)
  } catch {
    return undefined
  }
}
