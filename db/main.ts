/** Brings the database schema up to date and exits. Every process does the same at its start; this one shows a
 *  deployment that the migrations work before it replaces anything. With `--finish` it also takes away what earlier
 *  releases use, once none of their processes runs; they cannot be started again afterwards. */
import { parseArgs } from 'node:util'
import { systemClock } from '../kit/sys/clock.ts'
import { exitProcess, processArguments } from '../kit/sys/process.ts'
import { startProcess } from '../kit/sys/start-process.ts'
import { migrate, SchemaIsNewer } from './kit/migrate.ts'
import { openDatabase } from './kit/open.ts'
import { finishUpgrade } from './process/index.ts'
import { MigrationsSettings } from './settings.ts'

const { settings, log } = await startProcess('migrations', MigrationsSettings)
const { finish: isFinishing = false } = parseArgs({
  args: [...processArguments()],
  options: { finish: { type: 'boolean' } },
}).values
const db = openDatabase({
  url: settings.databaseUrl,
  connectionsMaximum: 2,
  onConnectionLost: (error) => log.info('database connection lost', { error }),
})
const refused = await (isFinishing ? finishUpgrade({ db, clock: systemClock }) : migrate(db)).catch(
  (error: unknown) => {
    if (error instanceof SchemaIsNewer) return error.message
    throw error
  },
)
await db.destroy()
if (refused !== undefined) {
  log.error(isFinishing ? 'the upgrade is not finished' : 'this release is older than the database', {
    reason: refused,
  })
  exitProcess(1)
}
log.info(isFinishing ? 'the upgrade is finished' : 'the schema is up to date')
exitProcess(0)
