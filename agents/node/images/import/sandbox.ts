/** Runs programs that read untrusted files. They have limits for memory, processor time, file size and open files, no
 *  secrets in the environment, and no capabilities or ways to gain any. They run as user `nobody` when the agent is
 *  root. Files are passed as descriptors, because this user cannot enter the agent's folders. */
import { type ChildProcess, spawn } from 'node:child_process'
import { chown } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { defined } from '../../../../domain/defined.ts'
import { environment, isRoot } from '../../../../kit/sys/process.ts'
import { runProgram } from '../../run-program.ts'

/** User and group that own no files. */
export const NOBODY = 65_534
/** Limit of open descriptors: passed files, sockets, libraries. */
const OPEN_FILES_MAXIMUM = 64
const OUTPUT_CHARACTERS_MAXIMUM = 65_536
const MEBIBYTE = 1024 ** 2
const NICENESS = 15

export interface SandboxLimits {
  /** Limit of private memory. */
  readonly memoryMebibytes: number
  /** Limit of processor time. */
  readonly cpuSeconds: number
  /** Limit of the size of files that it writes. */
  readonly fileBytes: number
  readonly timeoutMilliseconds: number
}

export interface SandboxedProgram {
  readonly program: string
  readonly input: readonly string[]
  /** Descriptors that it gets as 3, 4 and so on. */
  readonly files?: readonly number[]
  /** Its standard input: a descriptor, or a text after which the input stays open as long as the agent lives. */
  readonly standardInput?: number | { readonly text: string }
  /** `own`: it starts with its rights and drops them itself, because user `nobody` cannot read its source. */
  readonly dropping?: 'before' | 'own'
  /** Whether it has access to the network. */
  readonly isNetworked?: boolean
  readonly limits: SandboxLimits
  readonly signal?: AbortSignal | undefined
}

/** A program in the sandbox failed. */
export class SandboxFailed extends Error {
  /** Its output until then. */
  readonly output: string
  /** Undefined when it was killed. */
  readonly exitCode: number | undefined
  constructor(message: string, output: string, exitCode?: number) {
    super(message)
    this.name = 'SandboxFailed'
    this.output = output
    this.exitCode = exitCode
  }
}

/** Lets a sandboxed program open the file again through its descriptor. */
export const giveToSandbox = (path: string): Promise<void> =>
  isRoot() ? chown(path, NOBODY, NOBODY) : Promise.resolve()

/** Returns the program's output. Throws SandboxFailed with the end of its error output when it fails, exceeds a limit
 *  or is stopped. */
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
  child.stdin?.on('error', () => {}) // it may exit before it has read everything
  if (isText) child.stdin?.write(standardInput.text)
  return outcome(child, sandboxed.program)
}

async function commandLine({ program, input, dropping = 'before', isNetworked, limits }: SandboxedProgram) {
  return [
    ...(isNetworked === true || !(await canCutOff()) ? [] : ['unshare', '--net', '--']),
    'nice', // guests have priority
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
    '--pdeathsig=SIGKILL', // the kernel kills it when the agent exits
    ...(isRoot() ? ['--inh-caps=-all', ...(dropping === 'before' ? DROP : [])] : []),
    '--',
    program,
    ...input,
  ]
}

const DROP = ['--bounding-set=-all', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']

let isCutOffPossible: Promise<boolean> | undefined
/** Whether programs can get a separate network without connections. Root can, except in a container without that right.
 */
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

/** Keeps only the end of the output. */
function collect(stream: Readable | null): () => string {
  let text = ''
  stream?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-OUTPUT_CHARACTERS_MAXIMUM)
  })
  return () => text
}
