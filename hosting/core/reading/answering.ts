/** Answers questions in the process that reads for one control plane. */
import { Refused } from '../refused.ts'
import { type Answer, ANSWER_BYTES_MAXIMUM, Question, shortened } from './messages.ts'
import { type Reading, type TaskName, TASKS } from './tasks.ts'

const isTask = (name: string): name is TaskName => Object.hasOwn(TASKS, name)

/** Returns the answer to one question, both as texts. Throws when the question is invalid. */
export async function answerTo(text: string, reading: Promise<Reading>): Promise<string> {
  const question = Question.parse(JSON.parse(text))
  const reply = JSON.stringify(await answer(question, reading))
  if (Buffer.byteLength(reply) <= ANSWER_BYTES_MAXIMUM) return reply
  return JSON.stringify({ id: question.id, failure: { detail: `more than ${ANSWER_BYTES_MAXIMUM} bytes` } })
}

async function answer({ id, task, words }: Question, reading: Promise<Reading>): Promise<Answer> {
  try {
    if (!isTask(task)) throw new Error(`there is no task ${task}`)
    // The caller has the same table.
    const work = (await reading)[task] as (...args: unknown[]) => Promise<unknown>
    return { id, value: await work(...words) }
  } catch (error) {
    const detail = shortened(error instanceof Error ? error.message : String(error))
    return { id, value: undefined, failure: error instanceof Refused ? { detail, refusal: error.reason } : { detail } }
  }
}
