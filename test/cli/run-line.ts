/** One command line in this process: only the terminal is the test's. */
import { spawn } from 'node:child_process'
import { run } from '../../cli/run.ts'
import { type Clock, systemClock } from '../../kit/sys/clock.ts'
import { systemRandom } from '../../kit/sys/random.ts'

export interface Ended {
  readonly code: number
  readonly out: string
  readonly error: string
}

export interface RunOptions {
  readonly environment?: Readonly<Record<string, string>>
  /** What is typed or piped in; a terminal answers questions with its lines. */
  readonly input?: string
  readonly isTerminal?: boolean
  readonly signal?: AbortSignal
  readonly clock?: Clock
  /** Called with all of the error output whenever there is more of it. */
  readonly onError?: (error: string) => void
}

/** Runs one command line in this process, to its end. */
export async function runLine(
  line: readonly string[],
  {
    environment = {},
    input = '',
    isTerminal = false,
    signal = new AbortController().signal,
    clock = systemClock,
    onError,
  }: RunOptions,
): Promise<Ended> {
  const said = { out: '', error: '' }
  const lines = input.split('\n')
  const code = await run(line, {
    environment,
    clock,
    random: systemRandom,
    signal,
    terminal: {
      isInputTerminal: isTerminal,
      isOutputTerminal: isTerminal,
      isErrorTerminal: isTerminal,
      input: (async function* () {
        yield Buffer.from(input)
      })(),
      write: (bytes) => void (said.out += typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString()),
      writeError: (text) => {
        said.error += text
        onError?.(said.error)
      },
      setRaw: () => {},
      ask: async (question) => {
        said.error += question
        return lines.shift() ?? ''
      },
      readAll: async () => input,
      runProgram: (program, words) =>
        new Promise((resolve, reject) => {
          const child = spawn(program, [...words], { env: { ...process.env, ...environment } })
          child.stdout.on('data', (bytes: Buffer) => void (said.out += bytes.toString()))
          child.stderr.on('data', (bytes: Buffer) => void (said.error += bytes.toString()))
          child.once('error', reject)
          child.once('close', (ended) => resolve(ended ?? 1))
          // a program that reads nothing closes its input
          child.stdin.on('error', () => undefined)
          child.stdin.end(input)
        }),
    },
  })
  return { code, ...said }
}
