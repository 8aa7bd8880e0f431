/** The process of object storage with root's rights. It starts engines, and the process that serves S3 clients and the
 *  platform. It exits when that process exits, and both are restarted together. `process-settings.ts` has its settings.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../kit/sys/clock.ts'
import { exitProcess, sendAndExit, sendToParent } from '../../kit/sys/process.ts'
import { startProcess } from '../../kit/sys/start-process.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { StartRefused } from '../kit/data-folder.ts'
import { openCertificates } from '../kubernetes/server/certificates.ts'
import { ObjectStorageSettings } from '../kit/process-settings.ts'
import { ISOLATION_TEXTS } from './isolation.ts'
import { startObjectStorage } from './start.ts'

const { settings, log, stop, stopped } = await startProcess('object-storage', ObjectStorageSettings)
const { data: folder, host, port, controlPort, hosts } = settings
const parts = { clock: systemClock, random: systemRandom, log }
const storage = await startObjectStorage({
  ...parts,
  folder,
  program: settings.engine,
  host,
  port,
  controlPort,
  cgroup: settings.cgroup,
  logLevel: settings.logLevel,
  portalOrigin: settings.portalOrigin,
  token: (await readFile(join(folder, 'token'), 'utf8')).trim(),
  certificates: await openCertificates({ ...parts, folder, hosts }),
  hasOutput: true,
}).catch((error: unknown) =>
  error instanceof StartRefused ? sendAndExit({ refused: error.message }, 1) : Promise.reject(error),
)
sendToParent({
  ready: true,
  port: storage.port,
  isolation: ISOLATION_TEXTS[storage.isolation.kind],
  metrics_url: `http://127.0.0.1:${controlPort}/metrics`,
})
void storage.ended.then((how) => {
  if (stop.aborted) return
  log.error('the process that serves clients has ended', { how })
  exitProcess(1)
})
await stopped
await storage.stop()
exitProcess(0)
