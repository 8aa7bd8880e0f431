/** Detects effects whose result changes only because they are repeated. A plan that waits for such a result waits for
 *  ever: each reconcile changes what it waits for. */
import { hash } from 'node:crypto'
import type { EffectReport } from './reconciler.ts'

/** How often in a row an effect may return another status for the same input: its work may be under way. */
const MOVES_TOLERATED = 10
/** The newest result is remembered for so many pairs of root and effect. */
const ANSWERS_MAXIMUM = 10_000

/** A bug of the effect: it returns another status at each call with the same input. */
export class RestlessEffect extends Error {
  constructor(name: string) {
    super(`the effect ${name} changes what it answers by its repetition`)
    this.name = 'RestlessEffect'
  }
}

interface Answer {
  readonly input: string
  readonly status: string
  readonly moves: number
}

export interface Answers {
  /** Throws RestlessEffect when the effect has returned different results too often in a row, for the same input. */
  judge(effect: { readonly uid: string; readonly name: string }, input: unknown, report: EffectReport): void
}

/** For one controller. Readings are not judged: they follow something that changes by itself. */
export function openAnswers(): Answers {
  const answers = new Map<string, Answer>()
  return {
    judge({ uid, name }, input, { status, isReading }) {
      if (status === undefined || isReading === true) return
      const id = `${uid} ${name}`
      const now = { input: digestOf(input), status: digestOf(status) }
      const before = answers.get(id)
      const isMoved = before?.input === now.input && before.status !== now.status
      const moves = isMoved ? before.moves + 1 : 0
      answers.delete(id)
      answers.set(id, { ...now, moves })
      for (const oldest of answers.keys()) {
        if (answers.size <= ANSWERS_MAXIMUM) break
        answers.delete(oldest)
      }
      if (moves > MOVES_TOLERATED) throw new RestlessEffect(name)
    },
  }
}

const digestOf = (value: unknown): string => hash('sha256', JSON.stringify(value) ?? '', 'base64')
