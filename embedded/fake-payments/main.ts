/** The process of the FAKE payment processor. `process-settings.ts` has its settings. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../kit/sys/clock.ts'
import { exitProcess, sendToParent } from '../../kit/sys/process.ts'
import { startProcess } from '../../kit/sys/start-process.ts'
import { FakePaymentsSettings } from '../kit/process-settings.ts'
import { startFakePayments } from './server.ts'

const { settings, log, stopped } = await startProcess('fake-payments', FakePaymentsSettings)
const secretIn = async (file: string): Promise<string> => (await readFile(file, 'utf8')).trim()

const server = await startFakePayments({
  clock: systemClock,
  log,
  port: settings.port,
  apiKey: await secretIn(settings.stripeKeyFile),
  webhookUrl: settings.webhookUrl,
  webhookSecret: await secretIn(settings.stripeWebhookSecretFile),
  file: join(settings.data, 'state.json'),
})
sendToParent({ ready: true, url: server.url, port: server.port })
await stopped
await server.stop()
exitProcess(0)
