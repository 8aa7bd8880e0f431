/** The process that hosts control planes as pods of a Kubernetes cluster, one for each host cluster. It runs in that
 *  cluster, or where the cluster's addresses of Services and pods are reachable. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startControl } from '../core/control-server.ts'
import { openHostMetrics } from '../core/metrics.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig, readServiceAccount } from '../../kit/kube/kubeconfig.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { environment, exitProcess, sendToParent } from '../../kit/sys/process.ts'
import { readSecretFile } from '../../kit/sys/secret-file.ts'
import { startProcess } from '../../kit/sys/start-process.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { openPodsHost } from './host.ts'
import { ControlPlanesHostSettings } from './process-settings.ts'
import { readSettings } from './settings.ts'

const { settings, log, stopped } = await startProcess('control-planes', ControlPlanesHostSettings)

const parts = { clock: systemClock, random: systemRandom, log }
const transport = openHttpsTransport(await accessToHostCluster())
const planes = await openPodsHost({
  folder: join(settings.data, 'clusters'),
  settings: await readSettings(settings.hostClusterFile),
  cluster: openClient({ transport: transport.transport, fieldManager: 'svccloud', ...parts }),
  ...parts,
})
const metrics = openRegistry({ isProcessWide: true })
openHostMetrics(metrics, planes, systemClock)
const control = await startControl({
  port: settings.controlPort,
  open: await openListener(),
  token: await readSecretFile(settings.tokenFile),
  planes,
  metrics,
  log,
})
sendToParent({ ready: true })
log.info('serving')
await stopped
await control.stop()
await planes.stop()
await transport.close()
exitProcess(0)

async function accessToHostCluster() {
  if (settings.kubeconfig !== undefined) return readKubeconfig(settings.kubeconfig, systemClock)
  const access = await readServiceAccount(environment(), systemClock)
  if (access === undefined) throw new Error('SVCCLOUD_KUBECONFIG names no host cluster, and this is no pod')
  return access
}

/** Undefined when it listens on the loopback only. */
async function openListener() {
  const { host, certificateFile, keyFile } = settings
  if (certificateFile === undefined || keyFile === undefined) return undefined
  const [certificate, key] = await Promise.all([certificateFile, keyFile].map((file) => readFile(file, 'utf8')))
  return { host, certificate: { certificate: certificate ?? '', key: key ?? '' } }
}
