/** The host's side of the process that reads for one control plane: asks it, and judges what it answers. It may be in
 *  the hands of whoever has the cluster: one that says what cannot be meant, or nothing in time, is begun anew. */
import type { z } from 'zod'
import type { Clock } from '../../../kit/sys/clock.ts'
import { Refused } from '../refused.ts'
import { Answer, type Question } from './messages.ts'
import { type Reading, type TaskName, TASKS } from './tasks.ts'

/** Under way at a time. */
export const QUESTIONS_MAXIMUM = 64

interface Asked {
  readonly answered: (answer: Answer) => void
  readonly failed: (error: Error) => void
}

export interface AskingOptions {
  /** Brings a question to it, whose answer is heard later. Throws where there is nobody to ask. */
  readonly send: (question: Question) => void
  /** It is not believed any longer, and has to be begun anew. */
  readonly end: () => void
  readonly clock: Clock
}

export class Asking {
  readonly #options: AskingOptions
  readonly #asked = new Map<number, Asked>()
  #count = 0

  constructor(options: AskingOptions) {
    this.#options = options
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
    if (!judged.success) throw this.end(`it answered ${task} with what cannot be meant`)
    return judged.data as Awaited<ReturnType<Reading[Name]>> // by the table of answers
  }

  /** An answer, to that question where it is known to which. Throws for what is none, and for one that nobody has
   *  asked for. */
  hear(text: string, id?: number): void {
    const answer = Answer.parse(JSON.parse(text))
    const asked = this.#asked.get(answer.id)
    // And nobody listens to what nobody has asked.
    if (asked === undefined || answer.id !== (id ?? answer.id)) throw new Error('nobody has asked')
    this.#asked.delete(answer.id)
    asked.answered(answer)
  }

  /** The answer to a question did not come: it was not asked, or has ended. */
  fail(id: number, error: Error): void {
    this.#asked.get(id)?.failed(error)
  }

  /** Nothing more is believed of it: what was asked has failed. */
  end(why: string): Error {
    const error = new Error(`what reads its API is started again: ${why}`)
    this.#options.end()
    for (const { failed } of this.#asked.values()) failed(error)
    return error
  }

  async #send(task: TaskName, words: readonly unknown[]): Promise<Answer> {
    if (this.#asked.size >= QUESTIONS_MAXIMUM) throw new Error('too much is asked of its API')
    const id = this.#count++
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const { clock, send } = this.#options
    const { milliseconds } = TASKS[task]
    send({ id, task, words: [...words] })
    const cancel = clock.after(milliseconds, () => this.end(`it was silent for too long (${task})`))
    this.#asked.set(id, { answered: resolve, failed: reject })
    return promise.finally(() => {
      cancel()
      this.#asked.delete(id)
    })
  }
}
