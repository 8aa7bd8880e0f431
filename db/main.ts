/** Brings the database schema up to date and exits. Every process does the same at its start; this one shows a
 *  deployment that the migrations work before it replaces anything. */
import { exitProcess } from '../kit/sys/process.ts'
import { startProcess } from '../kit/sys/start-process.ts'
import { migrate } from './kit/migrate.ts'
import { openDatabase } from './kit/open.ts'
import { MigrationsSettings } from './settings.ts'

const { settings, log } = await startProcess('migrations', MigrationsSettings)
const db = openDatabase({
  url: settings.databaseUrl,
  connectionsMaximum: 2,
  onConnectionLost: (error) => log.info('database connection lost', { error }),
})
await migrate(db)
await db.destroy()
log.info('the schema is up to date')
exitProcess(0)
