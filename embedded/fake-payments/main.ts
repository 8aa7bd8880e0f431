/** The process of the FAKE payment processor. Environment: SVCCLOUD_DATA (its folder), SVCCLOUD_PORT (0: any),
 *  SVCCLOUD_WEBHOOK_URL (where events go), SVCCLOUD_STRIPE_KEY_FILE, SVCCLOUD_STRIPE_WEBHOOK_SECRET_FILE. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../kit/sys/clock.ts'
import { openLog } from '../../kit/sys/log.ts'
import { environment, requiredVariable, exitProcess, onFatal, sendToParent, stopSignal } from '../../kit/sys/process.ts'
import { startFakePayments } from './server.ts'

const given = environment()
const log = openLog('fake-payments', given['SVCCLOUD_LOG_LEVEL'] ?? 'info')
onFatal((error) => log.error('unexpected error', { error }))
const stop = stopSignal()

const secretIn = async (name: string): Promise<string> => (await readFile(requiredVariable(name), 'utf8')).trim()

const server = await startFakePayments({
  clock: systemClock,
  log,
  port: Number(given['SVCCLOUD_PORT'] ?? 0),
  apiKey: await secretIn('SVCCLOUD_STRIPE_KEY_FILE'),
  webhookUrl: requiredVariable('SVCCLOUD_WEBHOOK_URL'),
  webhookSecret: await secretIn('SVCCLOUD_STRIPE_WEBHOOK_SECRET_FILE'),
  file: join(requiredVariable('SVCCLOUD_DATA'), 'state.json'),
})
sendToParent({ ready: true, url: server.url, port: server.port })
await new Promise<void>((resolve) =>
  stop.aborted ? resolve() : stop.addEventListener('abort', () => resolve(), { once: true }),
)
await server.stop()
exitProcess(0)
