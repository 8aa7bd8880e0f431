/** Programs that read what strangers made: with limits of memory, processor time, file size and open files, without
 *  secrets in the environment, without capabilities and without a way to gain any; as nobody, when the agent is root.
 *  Files are handed in as descriptors, because nobody may enter the agent's folders. */
import { type ChildProcess, spawn } from 'node:child_process'
import { chown } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { defined } from '../../../../domain/defined.ts'
import { environment, isRoot } from '../../../../kit/sys/process.ts'
import { runProgram } from '../../run-program.ts'

/** User and group that own nothing. */
export const NOBODY = 65_534
/** How many descriptors a program may have: what it is handed, sockets, libraries. */
const OPEN_FILES_MAXIMUM = 64
const OUTPUT_CHARACTERS_MAXIMUM = 65_536
const MEBIBYTE = 1024 ** 2
const NICENESS = 15

export interface SandboxLimits {
  /** Of private memory. */
  readonly memoryMebibytes: number
  /** Processor time. */
  readonly cpuSeconds: number
  /** The largest file that it may write. */
  readonly fileBytes: number
  readonly timeoutMilliseconds: number
}

export interface SandboxedProgram {
  readonly program: string
  readonly input: readonly string[]
  /** Descriptors that it finds as 3, 4 and so on. */
  readonly files?: readonly number[]
  /** What it reads: a descriptor, or a text after which its input stays open for as long as the agent lives. */
  readonly standardInput?: number | { readonly text: string }
  /** `own`: it is started as it is and drops its rights itself, because nobody may not read its source. */
  readonly dropping?: 'before' | 'own'
  /** Whether it may reach the network. */
  readonly isNetworked?: boolean
  readonly limits: SandboxLimits
  readonly signal?: AbortSignal | undefined
}

/** How a program ended that did not succeed. */
export class SandboxFailed extends Error {
  /** What it printed until then. */
  readonly output: string
  /** Undefined when it did not end by itself. */
  readonly exitCode: number | undefined
  constructor(message: string, output: string, exitCode?: number) {
    super(message)
    this.name = 'SandboxFailed'
    this.output = output
    this.exitCode = exitCode
  }
}

/** Makes the file one that a sandboxed program may open again by its descriptor. */
export const giveToSandbox = (path: string): Promise<void> =>
  isRoot() ? chown(path, NOBODY, NOBODY) : Promise.resolve()

/** What the program printed. Throws SandboxFailed with the end of its error output when it fails, exceeds a limit or is
 *  stopped. */
export async function runSandboxed(sandboxed: SandboxedProgram): Promise<string> {
  const { files = [], standardInput, limits, signal } = sandboxed
  signal?.throwIfAborted()
  const [program = '', ...input] = await commandLine(sandboxed)
  const isText = typeof standardInput === 'object'
  const child = spawn(program, input, {
    env: { PATH: environment()['PATH'], LC_ALL: 'C' },
    stdio: [isText ? 'pipe' : (standardInput ?? 'ignore'), 'pipe', 'pipe', ...files],
    timeout: limits.timeoutMilliseconds,
    killSignal: 'SIGKILL',
    ...defined({ signal }),
  })
  child.stdin?.on('error', () => {}) // it may end before it has read everything
  if (isText) child.stdin?.write(standardInput.text)
  return outcome(child, sandboxed.program)
}

async function commandLine({ program, input, dropping = 'before', isNetworked, limits }: SandboxedProgram) {
  return [
    ...(isNetworked === true || !(await canCutOff()) ? [] : ['unshare', '--net', '--']),
    'nice', // guests come first
    `--adjustment=${NICENESS}`,
    'prlimit',
    `--data=${limits.memoryMebibytes * MEBIBYTE}`,
    `--cpu=${limits.cpuSeconds}`,
    `--fsize=${limits.fileBytes}`,
    `--nofile=${OPEN_FILES_MAXIMUM}`,
    '--core=0',
    '--',
    'setpriv',
    '--no-new-privs',
    '--pdeathsig=SIGKILL', // it ends with the agent
    ...(isRoot() ? ['--inh-caps=-all', ...(dropping === 'before' ? DROP : [])] : []),
    '--',
    program,
    ...input,
  ]
}

const DROP = ['--bounding-set=-all', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']

let isCutOffPossible: Promise<boolean> | undefined
/** Whether programs can be given a network of their own, which leads nowhere: root may, unless it is one of a container
 *  without that right. */
function canCutOff(): Promise<boolean> {
  isCutOffPossible ??= isRoot()
    ? runProgram('unshare', ['--net', '--', 'true']).then(
        () => true,
        () => false,
      )
    : Promise.resolve(false)
  return isCutOffPossible
}

function outcome(child: ChildProcess, program: string): Promise<string> {
  const output = collect(child.stdout)
  const errors = collect(child.stderr)
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new SandboxFailed(`${program}: ${error.message}`, output())))
    child.once('close', (code, signal) => {
      if (code === 0) return resolve(output())
      const why = signal === null ? `failed: ${errors().trim().slice(-600)}` : `was ended by ${signal}`
      reject(new SandboxFailed(`${program} ${why}`, output(), code ?? undefined))
    })
  })
}

/** Keeps the end of what is printed. */
function collect(stream: Readable | null): () => string {
  let text = ''
  stream?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-OUTPUT_CHARACTERS_MAXIMUM)
  })
  return () => text
}
