/** The process of the embedded Kubernetes API. `process-settings.ts` has its settings.
 *  Sends its parent `{ready, url, port, kubeconfig, ca_certificate}` when it serves. */
import { readFile } from 'node:fs/promises'
import { systemClock } from '../../kit/sys/clock.ts'
import { exitProcess, printErrorLine, sendToParent } from '../../kit/sys/process.ts'
import { startProcess } from '../../kit/sys/start-process.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { KubernetesSettings } from '../kit/process-settings.ts'
import { startKubernetesApi } from './server/serve.ts'
import { FolderLocked, LogDamaged } from './storage/log.ts'

const { settings, log, stopped } = await startProcess('kubernetes', KubernetesSettings)
const { data: folder, host, port, webhookTokenFile } = settings
const refuse: (why: string) => never = (why) => {
  printErrorLine(why)
  return exitProcess(1)
}
/** The next start finds everything that was acknowledged. */
const onStorageFailure = (error: unknown): never => {
  log.error('the log could not be written', { error })
  return exitProcess(70)
}

try {
  const server = await startKubernetesApi({
    folder,
    host,
    port,
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
  await stopped
  await server.stop()
  exitProcess(0)
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException // only system errors have a code
  if (error instanceof FolderLocked || error instanceof LogDamaged) refuse(error.message)
  if (code === 'EADDRINUSE') refuse(`port ${port} on ${host} is in use`)
  if (code === 'EACCES') refuse(`no permission: ${message}`)
  throw error
}
