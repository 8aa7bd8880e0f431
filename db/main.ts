/** Brings the database schema up to date and ends. Every process does the same at its start; this one tells a
 *  deployment that the migrations work before it replaces anything. Environment: SVCCLOUD_DATABASE_URL or DATABASE_URL,
 *  SVCCLOUD_LOG_LEVEL. */
import { openLog } from '../kit/sys/log.ts'
import { environment, exitProcess, onFatal } from '../kit/sys/process.ts'
import { migrate, openDatabase } from './open.ts'

const { DATABASE_URL, SVCCLOUD_DATABASE_URL, SVCCLOUD_LOG_LEVEL = 'info' } = environment()
const log = openLog('migrations', SVCCLOUD_LOG_LEVEL)
onFatal((error) => log.error('fatal', { error }))

const url = DATABASE_URL ?? SVCCLOUD_DATABASE_URL
if (url === undefined) throw new Error('SVCCLOUD_DATABASE_URL is not set')
const db = openDatabase({
  url,
  connectionsMaximum: 2,
  onConnectionLost: (error) => log.info('database connection lost', { error }),
})
await migrate(db)
await db.destroy()
log.info('the schema is up to date')
exitProcess(0)
