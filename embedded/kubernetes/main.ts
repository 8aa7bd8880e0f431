/** The process of the embedded Kubernetes API.
 *  Environment: SVCCLOUD_DATA (its folder, required), SVCCLOUD_HOST (127.0.0.1), SVCCLOUD_PORT (0 takes a free one),
 *  SVCCLOUD_LOG_LEVEL (info), SVCCLOUD_WEBHOOK_TOKEN_FILE (what it shows to webhooks on this machine). Tells its parent
 *  `{ready, url, port, kubeconfig, ca_certificate}` when it serves. */
import { readFile } from 'node:fs/promises'
import { systemClock } from '../../kit/sys/clock.ts'
import { openLog } from '../../kit/sys/log.ts'
import { environment, exitProcess, onFatal, printErrorLine, stopSignal, sendToParent } from '../../kit/sys/process.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { startServer } from './server/serve.ts'
import { FolderLocked, LogDamaged } from './storage/log.ts'

const {
  SVCCLOUD_DATA: folder,
  SVCCLOUD_HOST: host = '127.0.0.1',
  SVCCLOUD_PORT: port = '0',
  SVCCLOUD_LOG_LEVEL: level = 'info',
  SVCCLOUD_WEBHOOK_TOKEN_FILE: webhookTokenFile,
} = environment()
const log = openLog('kubernetes', level)
onFatal((error) => log.error('unexpected error', { error }))
const stop = stopSignal()
const refuse: (why: string) => never = (why) => {
  printErrorLine(why)
  return exitProcess(1)
}
/** Whoever starts it again finds everything that was acknowledged. */
const onStorageFailure = (error: unknown): never => {
  log.error('the log could not be written', { error })
  return exitProcess(70)
}
if (folder === undefined) refuse('SVCCLOUD_DATA is not set')

try {
  const server = await startServer({
    folder,
    host,
    port: Number(port),
    clock: systemClock,
    random: systemRandom,
    log,
    webhookToken: webhookTokenFile === undefined ? undefined : (await readFile(webhookTokenFile, 'utf8')).trim(),
    onStorageFailure,
  })
  log.info('serving', { url: server.url })
  sendToParent({
    ready: true,
    url: server.url,
    port: server.port,
    kubeconfig: server.kubeconfig,
    ca_certificate: server.authorityFile,
  })
  await new Promise<void>((resolve) =>
    stop.aborted ? resolve() : stop.addEventListener('abort', () => resolve(), { once: true }),
  )
  await server.stop()
  exitProcess(0)
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException // errors that are not the system's have no code
  if (error instanceof FolderLocked || error instanceof LogDamaged) refuse(error.message)
  if (code === 'EADDRINUSE') refuse(`port ${port} on ${host} is in use`)
  if (code === 'EACCES') refuse(`no permission: ${message}`)
  throw error
}
