/** The process of object storage that has the rights of root: starts engines, and the process that listens for S3
 *  clients and for the platform. It ends when that one ends, and is started again with it. Environment:
 *  SVCCLOUD_DATA (its folder), SVCCLOUD_ENGINE (the program), SVCCLOUD_HOST and SVCCLOUD_PORT (for clients),
 *  SVCCLOUD_CONTROL_PORT, SVCCLOUD_HOSTS (what its certificate is for, separated by commas). */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../kit/sys/clock.ts'
import { openLog } from '../../kit/sys/log.ts'
import {
  environment,
  requiredVariable,
  exitProcess,
  onFatal,
  sendAndExit,
  sendToParent,
  stopSignal,
} from '../../kit/sys/process.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { StartRefused } from '../data-folder.ts'
import { openCertificates } from '../kubernetes/server/certificates.ts'
import { ISOLATION_TEXTS } from './isolation.ts'
import { startObjectStorage } from './start.ts'

const given = environment()
const log = openLog('object-storage', given['SVCCLOUD_LOG_LEVEL'] ?? 'info')
onFatal((error) => log.error('unexpected error', { error }))
const stop = stopSignal()

const folder = requiredVariable('SVCCLOUD_DATA')
const parts = { clock: systemClock, random: systemRandom, log }
const hosts = requiredVariable('SVCCLOUD_HOSTS').split(',')
const storage = await startObjectStorage({
  ...parts,
  folder,
  program: requiredVariable('SVCCLOUD_ENGINE'),
  host: requiredVariable('SVCCLOUD_HOST'),
  port: Number(requiredVariable('SVCCLOUD_PORT')),
  controlPort: Number(requiredVariable('SVCCLOUD_CONTROL_PORT')),
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
  metrics_url: `http://127.0.0.1:${requiredVariable('SVCCLOUD_CONTROL_PORT')}/metrics`,
})
void storage.ended.then((how) => {
  if (stop.aborted) return
  log.error('the process that serves clients has ended', { how })
  exitProcess(1)
})
await new Promise<void>((resolve) =>
  stop.aborted ? resolve() : stop.addEventListener('abort', () => resolve(), { once: true }),
)
await storage.stop()
exitProcess(0)
