/** Runs a program of the node and waits for its exit. */
import { execFile } from 'node:child_process'
import { Refused } from './refusal.ts'

const TIMEOUT_MILLISECONDS = 300_000
const OUTPUT_BYTES_MAXIMUM = 1024 * 1024
const ERROR_CHARACTERS = 600

export interface ProgramResult {
  /** Exit status. */
  readonly status: number
  readonly output: string
}

/** Throws INTERNAL, with the end of its output, when the program is missing, takes too long, or exits with a status
 *  that is not accepted. */
export function runProgram(
  program: string,
  input: readonly string[],
  statuses: readonly number[] = [0],
): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const options = { timeout: TIMEOUT_MILLISECONDS, maxBuffer: OUTPUT_BYTES_MAXIMUM, encoding: 'utf8' } as const
    execFile(program, [...input], options, (error, stdout, stderr) => {
      const status = error === null ? 0 : error.code
      if (typeof status === 'number' && statuses.includes(status)) return resolve({ status, output: stdout })
      const output = (stderr.trim() || stdout.trim()).slice(-ERROR_CHARACTERS)
      reject(new Refused('INTERNAL', `${program} failed: ${output || String(error)}`))
    })
  })
}
