/** The process that reads responses of the API servers and the etcd of one control plane. It runs in the folder of the
 *  control plane, as its user. Questions and answers are lines. */
import { readLines } from '../../../kit/http/bounded.ts'
import { answerTo } from '../../core/reading/answering.ts'
import { QUESTION_BYTES_MAXIMUM } from '../../core/reading/messages.ts'
import { openReading } from '../../core/reading/tasks.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { openLog } from '../../../kit/sys/log.ts'
import { exitProcess, onFatal, printLine, standardStreams } from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { RUN_FOLDER } from '../users.ts'

/** The user has no access to its folder through an absolute path. */
const HERE = '.'
const log = openLog('reader', 'info')
onFatal((error) => log.error('unexpected error', { error }))

const opening = openReading({ folder: HERE, snapshotFolder: RUN_FOLDER, clock: systemClock, random: systemRandom })
for await (const line of readLines(standardStreams().input, QUESTION_BYTES_MAXIMUM))
  void answerTo(line, opening).then(printLine)
exitProcess(0) // the parent has exited
