/** The process that hosts control planes of Kubernetes: keeps the programs of each running, and listens for the
 *  platform. Environment: SVCCLOUD_DATA (its folder), SVCCLOUD_HOST (endpoints listen on it), SVCCLOUD_CONTROL_PORT,
 *  SVCCLOUD_MEMORY_MEBIBYTES (for all of them together), SVCCLOUD_NODES_ADDRESS (by which nodes reach this machine;
 *  without it none joins), SVCCLOUD_NODES_SOCKET (where their connections come in) and SVCCLOUD_NODES_PORTS (which
 *  ports they come to there, FIRST+COUNT), SVCCLOUD_API_URL (of the platform, which add-ons of clusters call; without
 *  it no cluster has any), SVCCLOUD_IMAGE_CACHE (images of guests) and SVCCLOUD_PLAYGROUNDS_DOMAIN and
 *  SVCCLOUD_PLAYGROUNDS_PORT (what is in playgrounds is served below that, and there; without these there are none) and
 *  SVCCLOUD_PLAYGROUNDS_ACCELERATOR (kvm, where everybody may use that; tcg otherwise). */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../kit/sys/clock.ts'
import { openLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import {
  environment,
  exitProcess,
  onFatal,
  requiredVariable,
  sendAndExit,
  sendToParent,
  stopSignal,
} from '../../kit/sys/process.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { findAddons } from './addon-table.ts'
import { startControl } from '../../kit/control-planes/hosting/control-server.ts'
import { openTemplateStore } from '../../agents/node/images/template-store.ts'
import { GuestTemplates } from './guests/template.ts'
import { GUEST_SIZE, type NodesWay, openHost } from './host.ts'
import { openHostMetrics } from '../../kit/control-planes/hosting/metrics.ts'
import { findKubernetes, kubernetesObstacle } from './programs.ts'

const log = openLog('control-planes', environment()['SVCCLOUD_LOG_LEVEL'] ?? 'info')
onFatal((error) => log.error('unexpected error', { error }))
const stop = stopSignal()

const refused = await kubernetesObstacle()
if (refused !== undefined) await sendAndExit({ refused }, 1)
const programs = (await findKubernetes()) ?? (await sendAndExit({ refused: 'its programs are missing' }, 1))
const folder = requiredVariable('SVCCLOUD_DATA')
const host = requiredVariable('SVCCLOUD_HOST')
const controlPort = Number(requiredVariable('SVCCLOUD_CONTROL_PORT'))
const planes = await openHost({
  folder: join(folder, 'clusters'),
  programs,
  host,
  addresses: ['0.0.0.0', '::'].includes(host) ? [] : [host],
  nodes: nodesWay(),
  addons: await addonsHere(),
  guests: guestsHere(),
  memoryBytes: Number(requiredVariable('SVCCLOUD_MEMORY_MEBIBYTES')) * 1024 ** 2,
  clock: systemClock,
  random: systemRandom,
  log,
})
const metrics = openRegistry({ isProcessWide: true })
openHostMetrics(metrics, planes, systemClock)
const control = await startControl({
  port: controlPort,
  token: (await readFile(join(folder, 'token'), 'utf8')).trim(),
  planes,
  metrics,
  log,
})
sendToParent({ ready: true, metrics_url: `http://127.0.0.1:${controlPort}/metrics` })
await new Promise<void>((resolve) =>
  stop.aborted ? resolve() : stop.addEventListener('abort', () => resolve(), { once: true }),
)
await control.stop()
await planes.stop()
exitProcess(0)

function guestsHere() {
  const { SVCCLOUD_IMAGE_CACHE: images, SVCCLOUD_PLAYGROUNDS_DOMAIN: appDomain } = environment()
  const port = Number(environment()['SVCCLOUD_PLAYGROUNDS_PORT'])
  if (images === undefined || appDomain === undefined || !(port > 0)) return undefined
  const parts = { clock: systemClock, log }
  const hasKvm = environment()['SVCCLOUD_PLAYGROUNDS_ACCELERATOR'] === 'kvm'
  const store = openTemplateStore({ folder: images, ...parts })
  const templates = new GuestTemplates({
    folder: join(folder, 'guests'),
    images: store,
    size: GUEST_SIZE,
    hasKvm,
    ...parts,
  })
  return { templates, appDomain, port }
}

async function addonsHere() {
  const { SVCCLOUD_API_URL: apiUrl } = environment()
  return apiUrl === undefined ? undefined : { apiUrl, known: await findAddons() }
}

function nodesWay(): NodesWay | undefined {
  const { SVCCLOUD_NODES_ADDRESS: address, SVCCLOUD_NODES_SOCKET: socket, SVCCLOUD_NODES_PORTS: range } = environment()
  if (address === undefined) return undefined
  if (socket === undefined) return { address }
  const [firstPort, ports] = (range ?? '').split('+').map(Number)
  if (firstPort === undefined || ports === undefined) throw new Error('SVCCLOUD_NODES_PORTS is FIRST+COUNT')
  return { address, door: { socket, firstPort, ports } }
}
