/** The host's side of the process that reads for one control plane: asks it, and judges what it answers. It may be in
 *  the hands of whoever has the cluster: one that says what cannot be meant, or nothing in time, is ended, and another
 *  one started. */
import type { Readable, Writable } from 'node:stream'
import type { z } from 'zod'
import { readLines } from '../../../kit/http/bounded.ts'
import { Refused } from '../../../kit/control-planes/hosting/refused.ts'
import { GO_ENVIRONMENT } from '../../../kit/control-planes/hosting/flags.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { handedToOwn, ownProgram } from '../own-programs.ts'
import type { RunningPrograms } from '../programs-running.ts'
import { Answer, ANSWER_BYTES_MAXIMUM } from './messages.ts'
import { type Reading, type TaskName, TASKS } from './tasks.ts'

/** Its name among the programs of a control plane. */
export const READER = 'reader'
const MEBIBYTE = 1024 ** 2
/** Of its heap, and of all that it may have for itself. */
const [HEAP_MEBIBYTES, READER_BYTES] = [384, 1_024 * MEBIBYTE]
export const READER_COMMAND = [
  'prlimit',
  `--data=${READER_BYTES}`,
  '--',
  ...ownProgram('embedded/control-planes/reading/main.ts', [], [`--max-old-space-size=${HEAP_MEBIBYTES}`]),
]
const QUESTIONS_MAXIMUM = 64

interface Asked {
  readonly task: TaskName
  readonly answered: (answer: Answer) => void
  readonly failed: (error: Error) => void
}

export interface ReaderOptions {
  readonly programs: RunningPrograms
  /** As whom it runs. */
  readonly as: (command: readonly string[]) => readonly string[]
  readonly clock: Clock
}

export class Reader {
  readonly #options: ReaderOptions
  readonly #asked = new Map<number, Asked>()
  #input: Writable | undefined
  #count = 0

  constructor(options: ReaderOptions) {
    this.#options = options
  }

  /** Runs from now on. `environment` changes with the credentials that it reads at its start. */
  async start(environment: Readonly<Record<string, string>> = GO_ENVIRONMENT): Promise<void> {
    const { programs, as } = this.#options
    const onPipes = (input: Writable, output: Readable) => void this.#listen(input, output)
    await programs.start(READER, READER_COMMAND, { environment, as, onPipes, handed: handedToOwn() })
  }

  /** What the task of that name answers. Throws what it throws, and when the process ends, is silent for too long, or
   *  answers what the task does not. */
  async ask<Name extends TaskName>(
    task: Name,
    ...words: Parameters<Reading[Name]>
  ): Promise<Awaited<ReturnType<Reading[Name]>>> {
    const { failure, value } = await this.#send(task, words)
    if (failure?.refusal !== undefined) throw new Refused(failure.refusal, failure.detail)
    if (failure !== undefined) throw new Error(failure.detail)
    const judged = (TASKS[task].answers satisfies z.ZodType).safeParse(value)
    if (!judged.success) throw this.#end(`it answered ${task} with what cannot be meant`)
    return judged.data as Awaited<ReturnType<Reading[Name]>> // by the table of answers
  }

  #send(task: TaskName, words: readonly unknown[]): Promise<Answer> {
    const input = this.#input
    if (input === undefined) return Promise.reject(new Error('what reads its API is being started'))
    if (this.#asked.size >= QUESTIONS_MAXIMUM) return Promise.reject(new Error('too much is asked of its API'))
    const id = this.#count++
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const { milliseconds } = TASKS[task]
    const cancel = this.#options.clock.after(milliseconds, () => this.#end(`it was silent for too long (${task})`))
    this.#asked.set(id, { task, answered: resolve, failed: reject })
    input.write(`${JSON.stringify({ id, task, words })}\n`)
    return promise.finally(() => {
      cancel()
      this.#asked.delete(id)
    })
  }

  async #listen(input: Writable, output: Readable): Promise<void> {
    this.#input = input
    let why = 'it has ended'
    try {
      for await (const line of readLines(output, ANSWER_BYTES_MAXIMUM)) {
        const answer = Answer.parse(JSON.parse(line))
        const asked = this.#asked.get(answer.id)
        if (asked === undefined) throw new Error('nobody has asked') // and nobody listens to what nobody has asked
        this.#asked.delete(answer.id)
        asked.answered(answer)
      }
    } catch {
      why = 'it said what cannot be meant'
    }
    if (this.#input === input) this.#end(why)
  }

  /** Nothing more is believed of it: it is ended, and what was asked has failed. */
  #end(why: string): Error {
    const error = new Error(`what reads its API is started again: ${why}`)
    this.#input = undefined
    const { programs } = this.#options
    const pid = programs.pid(READER)
    if (pid !== undefined) signalProcess(pid, 'SIGKILL')
    for (const { failed } of this.#asked.values()) failed(error)
    return error
  }
}
