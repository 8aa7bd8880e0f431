/** The process that holds the embedded PostgreSQL. Environment: SVCCLOUD_DATA (its folder), SVCCLOUD_PORT (0 or unset:
 *  as last time). */
import { systemClock } from '../kit/sys/clock.ts'
import { openLog } from '../kit/sys/log.ts'
import { environment, exitProcess, onFatal, sendAndExit, stopSignal, sendToParent } from '../kit/sys/process.ts'
import { systemRandom } from '../kit/sys/random.ts'
import { StartRefused } from './data-folder.ts'
import { startPostgres } from './postgres.ts'

const { SVCCLOUD_DATA: folder, SVCCLOUD_PORT: port, SVCCLOUD_LOG_LEVEL: level } = environment()
const log = openLog('postgres', level ?? 'info')
onFatal((error) => log.error('unexpected error', { error }))
const stop = stopSignal()
if (folder === undefined) throw new Error('SVCCLOUD_DATA is not set')

const start = startPostgres({
  folder,
  port: Number(port ?? 0),
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

const stopped = new Promise<'stopped'>((resolve) =>
  stop.aborted ? resolve('stopped') : stop.addEventListener('abort', () => resolve('stopped'), { once: true }),
)
const outcome = await Promise.race([stopped, postgres.ended])
if (outcome === 'stopped') await postgres.stop()
else log.error('postgres ended without being asked')
exitProcess(outcome === 'stopped' ? 0 : 1)
