/** The host's side of the process that reads for one control plane: sends questions and validates the answers. A tenant
 *  may have taken over the process. If it sends an invalid answer, or none in time, it is replaced. */
import type { z } from 'zod'
import type { Clock } from '../../../kit/sys/clock.ts'
import { Refused } from '../refused.ts'
import { Answer, type Question } from './messages.ts'
import { type Reading, type TaskName, TASKS } from './tasks.ts'

/** Under way at a time. */
export const QUESTIONS_MAXIMUM = 64

interface PendingQuestion {
  readonly answered: (answer: Answer) => void
  readonly failed: (error: Error) => void
}

export interface AskingOptions {
  /** Sends a question; the answer arrives later through `hear`. Throws when there is no process. */
  readonly send: (question: Question) => void
  /** Called when the process is no longer trusted and must be replaced. */
  readonly end: () => void
  readonly clock: Clock
}

export class Asking {
  readonly #options: AskingOptions
  readonly #pending = new Map<number, PendingQuestion>()
  #count = 0

  constructor(options: AskingOptions) {
    this.#options = options
  }

  /** Returns the result of the task of that name. Throws the task's errors, and an error when the process ends, is
   *  silent for too long, or returns an invalid result. */
  async ask<Name extends TaskName>(
    task: Name,
    ...words: Parameters<Reading[Name]>
  ): Promise<Awaited<ReturnType<Reading[Name]>>> {
    const { failure, value } = await this.#send(task, words)
    if (failure?.refusal !== undefined) throw new Refused(failure.refusal, failure.detail)
    if (failure !== undefined) throw new Error(failure.detail)
    const judged = (TASKS[task].answers satisfies z.ZodType).safeParse(value)
    if (!judged.success) throw this.end(`it answered ${task} with what cannot be meant`)
    return judged.data as Awaited<ReturnType<Reading[Name]>> // validated by the table of answers
  }

  /** Handles an answer; `id` is its question, if that is known. Throws for an invalid answer, and for one without a
   *  question. */
  hear(text: string, id?: number): void {
    const answer = Answer.parse(JSON.parse(text))
    const question = this.#pending.get(answer.id)
    // An answer without a question has no listener either.
    if (question === undefined || answer.id !== (id ?? answer.id)) throw new Error('nobody has asked')
    this.#pending.delete(answer.id)
    question.answered(answer)
  }

  /** Fails a question whose answer will not arrive, because it was not sent or the process has ended. */
  fail(id: number, error: Error): void {
    this.#pending.get(id)?.failed(error)
  }

  /** Stops trusting the process, and fails all open questions. */
  end(why: string): Error {
    const error = new Error(`what reads its API is started again: ${why}`)
    this.#options.end()
    for (const { failed } of this.#pending.values()) failed(error)
    return error
  }

  async #send(task: TaskName, words: readonly unknown[]): Promise<Answer> {
    if (this.#pending.size >= QUESTIONS_MAXIMUM) throw new Error('too much is asked of its API')
    const id = this.#count++
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const { clock, send } = this.#options
    const { milliseconds } = TASKS[task]
    send({ id, task, words: [...words] })
    const cancel = clock.after(milliseconds, () => this.end(`it was silent for too long (${task})`))
    this.#pending.set(id, { answered: resolve, failed: reject })
    return promise.finally(() => {
      cancel()
      this.#pending.delete(id)
    })
  }
}
