/** The CSI driver of clusters. `controller` calls the platform for a cluster. `node` mounts disks of the machine that
 *  it runs on, as root and without a token. */
import { systemClock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { exitProcess, printErrorLine, processArguments } from '../../kit/sys/process.ts'
import { type StartedProcess, startProcess } from '../../kit/sys/start-process.ts'
import { openPlatform } from '../platform.ts'
import { CsiControllerSettings, CsiNodeSettings } from '../settings.ts'
import { controllerService } from './controller.ts'
import { identity } from './identity.ts'
import { nodeService } from './node.ts'
import { type Services, serveCsi } from './protocol.ts'
import { serveRegistration } from './registration.ts'

type Part = StartedProcess<{ readonly csiSocket: string; readonly registrationSocket?: string | undefined }> & {
  readonly services: Services
}

async function startController(): Promise<Part> {
  const started = await startProcess('csi', CsiControllerSettings)
  const { url, tokenFile, clusterId, zone } = started.settings
  const client = openPlatform({ url, tokenFile, clock: systemClock })
  return { ...started, services: { Identity: identity, Controller: controllerService({ client, clusterId, zone }) } }
}

async function startNode(): Promise<Part> {
  const started = await startProcess('csi', CsiNodeSettings)
  const { serverId, zone, disks: disksFolder } = started.settings
  const service = nodeService({ serverId, zone, disksFolder, clock: systemClock })
  return { ...started, services: { Identity: identity, Node: service } }
}

const start = new Map([
  ['controller', startController],
  ['node', startNode],
]).get(processArguments()[0] ?? '')
if (start === undefined) {
  printErrorLine('usage: main.ts controller | node')
  exitProcess(2)
}
const { settings, services, log, stopped } = await start()
const csi = await serveCsi(settings.csiSocket, services, log)
const registration = await register(settings.csiSocket, settings.registrationSocket, log)
log.info('ready')
await stopped
await registration?.stop()
await csi.stop()
exitProcess(0)

async function register(endpoint: string, socket: string | undefined, to: Logger) {
  return socket === undefined ? undefined : serveRegistration({ socket, endpoint, clock: systemClock, log: to })
}
