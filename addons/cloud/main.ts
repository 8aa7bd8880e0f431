/** The cloud controller of a cluster: services of type LoadBalancer get load balancers of the platform, nodes say which
 *  servers they are. One process for each cluster. SVCCLOUD_URL, SVCCLOUD_TOKEN_FILE, SVCCLOUD_CLUSTER_ID, KUBECONFIG
 *  (of the cluster). */
import { openCaches } from '../../kit/kube/caches.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import { openEventRecorder } from '../../kit/reconcile/events.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { openLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { environment, exitProcess, hostName, onFatal, requiredVariable, stopSignal } from '../../kit/sys/process.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import { openPlatform } from '../platform.ts'
import { CloudController } from './controller.ts'
import { Node, Service } from './objects.ts'
import { run } from './run.ts'

const log = openLog('cloud', environment()['SVCCLOUD_LOG_LEVEL'] ?? 'info')
onFatal((error) => log.error('unexpected error', { error }))
const stop = stopSignal()
const { transport, close } = openHttpsTransport(await readKubeconfig(requiredVariable('KUBECONFIG'), clock))
const store = openClient({ transport, fieldManager: 'svccloud-cloud', clock, random })
const caches = openCaches({ store, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
const services = caches.of(Service)
const nodes = caches.of(Node)
const controller = new CloudController({
  store,
  services,
  nodes,
  platform: openPlatform({
    url: requiredVariable('SVCCLOUD_URL'),
    tokenFile: requiredVariable('SVCCLOUD_TOKEN_FILE'),
    clock,
  }),
  clusterId: requiredVariable('SVCCLOUD_CLUSTER_ID'),
  events: openEventRecorder({ store, clock, log, controller: 'svccloud.dev/cloud', instance: hostName() }),
  clock,
  random,
  log,
})
caches.start(stop)
const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }))
await Promise.race([caches.ready(), stopped])
log.info('ready')
await run({ controller, services, nodes, clock, random, log }, stop)
await close()
exitProcess(0)
