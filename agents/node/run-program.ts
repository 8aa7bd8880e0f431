/** Runs a program of the host and waits for its exit. */
import { execFile } from 'node:child_process'
import { defined } from '../../domain/defined.ts'

export interface RunOptions {
  readonly workingDirectory?: string
  readonly timeoutMilliseconds?: number
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** Kills the program. */
  readonly signal?: AbortSignal
}

const TIMEOUT_MILLISECONDS = 60_000
const OUTPUT_BYTES_MAXIMUM = 16 * 1024 * 1024
const ERROR_CHARACTERS = 600

export class ProgramFailed extends Error {
  /** True when the program does not exist. */
  readonly isMissing: boolean
  constructor(message: string, isMissing: boolean, options: ErrorOptions) {
    super(message, options)
    this.name = 'ProgramFailed'
    this.isMissing = isMissing
  }
}

/** Returns the program's output. ProgramFailed with the end of its error output when it is missing, fails or takes too
 *  long. */
export function runProgram(program: string, input: readonly string[], options: RunOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      program,
      [...input],
      {
        ...defined({ cwd: options.workingDirectory }),
        ...(options.environment === undefined ? {} : { env: { ...options.environment } }),
        ...defined({ signal: options.signal }),
        timeout: options.timeoutMilliseconds ?? TIMEOUT_MILLISECONDS,
        killSignal: 'SIGKILL',
        maxBuffer: OUTPUT_BYTES_MAXIMUM,
      },
      (error, stdout, stderr) => {
        if (error === null) return resolve(stdout)
        // a missing program has a system error code, an exit has a number
        const isMissing = error.code === ('ENOENT' as unknown)
        const reason = isMissing
          ? 'is not installed'
          : error.killed === true
            ? 'took too long'
            : `failed: ${(stderr.trim() || stdout.trim()).slice(-ERROR_CHARACTERS)}`
        reject(new ProgramFailed(`${program} ${reason}`, isMissing, { cause: error }))
      },
    )
  })
}

/** Whether the program can be started. */
export async function hasProgram(program: string): Promise<boolean> {
  return runProgram(program, ['--version']).then(
    () => true,
    (error: unknown) => !(error instanceof ProgramFailed && error.isMissing),
  )
}
