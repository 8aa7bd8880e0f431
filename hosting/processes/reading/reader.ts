/** The process that reads for one control plane of this machine. It runs with the rights of the control plane's user,
 *  and exchanges lines over pipes. */
import type { Readable, Writable } from 'node:stream'
import { readLines } from '../../../kit/http/bounded.ts'
import { GO_ENVIRONMENT } from '../../core/flags.ts'
import { NotReady } from '../../core/not-ready.ts'
import { Asking } from '../../core/reading/asking.ts'
import { ANSWER_BYTES_MAXIMUM } from '../../core/reading/messages.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { handedToOwn, ownProgram } from '../own-programs.ts'
import type { RunningPrograms } from '../programs-running.ts'

/** Its name among the programs of a control plane. */
export const READER = 'reader'
const MEBIBYTE = 1024 ** 2
/** Limits of its heap, and of its private memory. */
const [HEAP_MEBIBYTES, READER_BYTES] = [384, 1_024 * MEBIBYTE]
export const READER_COMMAND = [
  'prlimit',
  `--data=${READER_BYTES}`,
  '--',
  ...ownProgram('hosting/processes/reading/main.ts', [], [`--max-old-space-size=${HEAP_MEBIBYTES}`]),
]

export interface ReaderOptions {
  readonly programs: RunningPrograms
  /** Wraps the command so that it runs as the user. */
  readonly as: (command: readonly string[]) => readonly string[]
  readonly clock: Clock
}

export class Reader {
  readonly #options: ReaderOptions
  readonly #asking: Asking
  #input: Writable | undefined

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#asking = new Asking({
      clock: options.clock,
      end: () => this.#kill(),
      send: (question) => {
        if (this.#input === undefined) throw new NotReady('what reads its API is being started')
        this.#input.write(`${JSON.stringify(question)}\n`)
      },
    })
  }

  /** Keeps it running. `environment` changes with the credentials that it reads at its start. */
  async start(environment: Readonly<Record<string, string>> = GO_ENVIRONMENT): Promise<void> {
    const { programs, as } = this.#options
    const onPipes = (input: Writable, output: Readable) => void this.#listen(input, output)
    await programs.start(READER, READER_COMMAND, { environment, as, onPipes, handed: handedToOwn() })
  }

  get ask(): Asking['ask'] {
    return this.#asking.ask.bind(this.#asking)
  }

  async #listen(input: Writable, output: Readable): Promise<void> {
    this.#input = input
    let why = 'it has ended'
    try {
      for await (const line of readLines(output, ANSWER_BYTES_MAXIMUM)) this.#asking.hear(line)
    } catch {
      why = 'it said what cannot be meant'
    }
    if (this.#input === input) this.#asking.end(why)
  }

  /** Kills it, so that another one is started. */
  #kill(): void {
    this.#input = undefined
    const pid = this.#options.programs.pid(READER)
    if (pid !== undefined) signalProcess(pid, 'SIGKILL')
  }
}
