/** The CSI driver of clusters. `controller` speaks to the platform for a cluster: SVCCLOUD_URL, SVCCLOUD_TOKEN_FILE,
 *  SVCCLOUD_CLUSTER_ID, SVCCLOUD_ZONE (of volumes for which nobody says where). `node` mounts disks of the machine that
 *  it runs on, as root and without any token: SVCCLOUD_SERVER_ID, SVCCLOUD_ZONE, and SVCCLOUD_REGISTRATION_SOCKET
 *  where a kubelet looks for drivers. Both: SVCCLOUD_CSI_SOCKET. */
import { systemClock } from '../../kit/sys/clock.ts'
import { openLog } from '../../kit/sys/log.ts'
import {
  environment,
  exitProcess,
  onFatal,
  printErrorLine,
  processArguments,
  requiredVariable,
  stopSignal,
} from '../../kit/sys/process.ts'
import { openPlatform } from '../platform.ts'
import { controllerService } from './controller.ts'
import { identity } from './identity.ts'
import { nodeService } from './node.ts'
import { type Services, serveCsi } from './protocol.ts'
import { serveRegistration } from './registration.ts'

const log = openLog('csi', environment()['SVCCLOUD_LOG_LEVEL'] ?? 'info')
onFatal((error) => log.error('unexpected error', { error }))
const stop = stopSignal()
const parts: Readonly<Record<string, () => Services>> = {
  controller: () => ({
    Identity: identity,
    Controller: controllerService({
      client: openPlatform({
        url: requiredVariable('SVCCLOUD_URL'),
        tokenFile: requiredVariable('SVCCLOUD_TOKEN_FILE'),
        clock: systemClock,
      }),
      clusterId: requiredVariable('SVCCLOUD_CLUSTER_ID'),
      zone: requiredVariable('SVCCLOUD_ZONE'),
    }),
  }),
  node: () => ({
    Identity: identity,
    Node: nodeService({
      serverId: requiredVariable('SVCCLOUD_SERVER_ID'),
      zone: requiredVariable('SVCCLOUD_ZONE'),
      disksFolder: environment()['SVCCLOUD_DISKS'] ?? '/dev/disk/by-id',
      clock: systemClock,
    }),
  }),
}
const part = parts[processArguments()[0] ?? '']
if (part === undefined) {
  printErrorLine('usage: main.ts controller | node')
  exitProcess(2)
}
const socket = requiredVariable('SVCCLOUD_CSI_SOCKET')
const csi = await serveCsi(socket, part(), log)
const { SVCCLOUD_REGISTRATION_SOCKET: registrationSocket } = environment()
const registration =
  registrationSocket === undefined
    ? undefined
    : await serveRegistration({ socket: registrationSocket, endpoint: socket, clock: systemClock, log })
log.info('ready')
await new Promise<void>((resolve) =>
  stop.aborted ? resolve() : stop.addEventListener('abort', () => resolve(), { once: true }),
)
await registration?.stop()
await csi.stop()
exitProcess(0)
