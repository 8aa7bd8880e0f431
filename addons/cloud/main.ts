/** The cloud controller of a cluster. Services of type LoadBalancer get load balancers of the platform, and nodes get
 *  the ids of their servers. One process for each cluster. */
import { openCaches } from '../../kit/kube/caches.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import { openEventRecorder } from '../../kit/reconcile/events.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { exitProcess, hostName } from '../../kit/sys/process.ts'
import { startProcess } from '../../kit/sys/start-process.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import { openPlatform } from '../platform.ts'
import { CloudControllerSettings } from '../settings.ts'
import { CloudController } from './controller.ts'
import { Node, Service } from './objects.ts'
import { run } from './run.ts'

const { settings, log, stop, stopped } = await startProcess('cloud', CloudControllerSettings)
const { transport, close } = openHttpsTransport(await readKubeconfig(settings.kubeconfig, clock))
const store = openClient({ transport, fieldManager: 'svccloud-cloud', clock, random })
const caches = openCaches({ store, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
const services = caches.of(Service)
const nodes = caches.of(Node)
const controller = new CloudController({
  store,
  services,
  nodes,
  platform: openPlatform({ url: settings.url, tokenFile: settings.tokenFile, clock }),
  clusterId: settings.clusterId,
  events: openEventRecorder({ store, clock, log, controller: 'svccloud.dev/cloud', instance: hostName() }),
  clock,
  random,
  log,
})
caches.start(stop)
await Promise.race([caches.ready(), stopped])
log.info('ready')
await run({ controller, services, nodes, clock, random, log }, stop)
await close()
exitProcess(0)
