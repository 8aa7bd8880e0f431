/** The process that hosts control planes as pods of a Kubernetes cluster: one for each host cluster. It runs there, or
 *  where addresses of Services and pods of it lead. Environment: SVCCLOUD_DATA (its folder: records, keys and
 *  snapshots; nobody else uses it), SVCCLOUD_HOST_CLUSTER_FILE (settings.ts says what is in it), SVCCLOUD_KUBECONFIG
 *  (of the host cluster; that which it runs in when absent), SVCCLOUD_HOST and SVCCLOUD_CONTROL_PORT (where it listens
 *  for the platform), SVCCLOUD_TOKEN_FILE (that the platform says), SVCCLOUD_CERTIFICATE_FILE and SVCCLOUD_KEY_FILE
 *  (of TLS; without them it listens for its own machine only), SVCCLOUD_LOG_LEVEL. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startControl } from '../../kit/control-planes/hosting/control-server.ts'
import { openHostMetrics } from '../../kit/control-planes/hosting/metrics.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig, readServiceAccount } from '../../kit/kube/kubeconfig.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { openLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { environment, exitProcess, onFatal, requiredVariable, sendToParent, stopSignal } from '../../kit/sys/process.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { openPodsHost } from './host.ts'
import { readSettings } from './settings.ts'

const log = openLog('control-planes', environment()['SVCCLOUD_LOG_LEVEL'] ?? 'info')
onFatal((error) => log.error('unexpected error', { error }))
const stop = stopSignal()

const parts = { clock: systemClock, random: systemRandom, log }
const transport = openHttpsTransport(await accessToHostCluster())
const planes = await openPodsHost({
  folder: join(requiredVariable('SVCCLOUD_DATA'), 'clusters'),
  settings: await readSettings(requiredVariable('SVCCLOUD_HOST_CLUSTER_FILE')),
  cluster: openClient({ transport: transport.transport, fieldManager: 'svccloud', ...parts }),
  ...parts,
})
const metrics = openRegistry({ isProcessWide: true })
openHostMetrics(metrics, planes, systemClock)
const control = await startControl({
  port: Number(requiredVariable('SVCCLOUD_CONTROL_PORT')),
  open: await door(),
  token: (await readFile(requiredVariable('SVCCLOUD_TOKEN_FILE'), 'utf8')).trim(),
  planes,
  metrics,
  log,
})
sendToParent({ ready: true })
log.info('serving')
await new Promise<void>((resolve) =>
  stop.aborted ? resolve() : stop.addEventListener('abort', () => resolve(), { once: true }),
)
await control.stop()
await planes.stop()
await transport.close()
exitProcess(0)

async function accessToHostCluster() {
  const { SVCCLOUD_KUBECONFIG: kubeconfig } = environment()
  if (kubeconfig !== undefined) return readKubeconfig(kubeconfig, systemClock)
  const access = await readServiceAccount(environment(), systemClock)
  if (access === undefined) throw new Error('SVCCLOUD_KUBECONFIG names no host cluster, and this is no pod')
  return access
}

async function door() {
  const { SVCCLOUD_HOST: host, SVCCLOUD_CERTIFICATE_FILE: certificate, SVCCLOUD_KEY_FILE: key } = environment()
  if (certificate === undefined || key === undefined) return undefined
  const read = (file: string) => readFile(file, 'utf8')
  return { host: host ?? '0.0.0.0', certificate: { certificate: await read(certificate), key: await read(key) } }
}
