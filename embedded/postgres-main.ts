/** The process that runs the embedded PostgreSQL. `process-settings.ts` has its settings. */
import { systemClock } from '../kit/sys/clock.ts'
import { exitProcess, sendAndExit, sendToParent } from '../kit/sys/process.ts'
import { startProcess } from '../kit/sys/start-process.ts'
import { systemRandom } from '../kit/sys/random.ts'
import { StartRefused } from './kit/data-folder.ts'
import { PostgresSettings } from './kit/process-settings.ts'
import { startPostgres } from './postgres.ts'

const { settings, log, stopped } = await startProcess('postgres', PostgresSettings)

const start = startPostgres({
  folder: settings.data,
  port: settings.port,
  isDurable: true,
  clock: systemClock,
  random: systemRandom,
  log,
})
const postgres = await start.catch((error: unknown) => {
  if (!(error instanceof StartRefused)) throw error
  log.error('postgres cannot start', { reason: error.message })
  return sendAndExit({ refused: error.message }, 1)
})
sendToParent({ ready: true, url: postgres.url, port: postgres.port })

const outcome = await Promise.race([stopped.then(() => 'stopped'), postgres.ended])
if (outcome === 'stopped') await postgres.stop()
else log.error('postgres ended without being asked')
exitProcess(outcome === 'stopped' ? 0 : 1)
