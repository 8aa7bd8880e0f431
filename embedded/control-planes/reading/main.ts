/** The process that reads what the API servers and the etcd of one control plane answer. In the folder of the control
 *  plane, as its user; questions come in by lines, and answers go out by lines. */
import { systemClock } from '../../../kit/sys/clock.ts'
import { openLog } from '../../../kit/sys/log.ts'
import { readLines } from '../../../kit/http/bounded.ts'
import { Refused } from '../../../kit/control-planes/hosting/refused.ts'
import { exitProcess, onFatal, printLine, standardStreams } from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { type Answer, ANSWER_BYTES_MAXIMUM, Question, QUESTION_BYTES_MAXIMUM, shortened } from './messages.ts'
import { openReading, type TaskName, TASKS } from './tasks.ts'

/** It has no way to its own folder from the root on. */
const HERE = '.'
const log = openLog('reader', 'info')
onFatal((error) => log.error('unexpected error', { error }))

const isTask = (name: string): name is TaskName => Object.hasOwn(TASKS, name)
const opening = openReading({ folder: HERE, clock: systemClock, random: systemRandom })
for await (const line of readLines(standardStreams().input, QUESTION_BYTES_MAXIMUM))
  void answer(Question.parse(JSON.parse(line))).then((said) => printLine(textOf(said)))
exitProcess(0) // whoever asks has ended

async function answer({ id, task, words }: Question): Promise<Answer> {
  try {
    if (!isTask(task)) throw new Error(`there is no task ${task}`)
    // Whoever asks has the same table.
    const work = (await opening)[task] as (...given: unknown[]) => Promise<unknown>
    return { id, value: await work(...words) }
  } catch (error) {
    const detail = shortened(error instanceof Error ? error.message : String(error))
    return { id, value: undefined, failure: error instanceof Refused ? { detail, refusal: error.reason } : { detail } }
  }
}

function textOf(said: Answer): string {
  const text = JSON.stringify(said)
  if (Buffer.byteLength(text) <= ANSWER_BYTES_MAXIMUM) return text
  return JSON.stringify({ id: said.id, failure: { detail: `more than ${ANSWER_BYTES_MAXIMUM} bytes` } })
}
