/** The process that hosts control planes of Kubernetes: keeps the programs of each running, and serves requests of the
 *  platform. `process-settings.ts` has its settings. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../kit/sys/clock.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { exitProcess, sendAndExit, sendToParent } from '../../kit/sys/process.ts'
import { startProcess } from '../../kit/sys/start-process.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { findAddons } from './addon-table.ts'
import { startControl } from '../core/control-server.ts'
import { openTemplateStore } from '../../agents/node/images/template-store.ts'
import { GuestTemplates } from './guests/template.ts'
import { GUEST_SIZE, type NodesWay, openHost } from './host.ts'
import { openHostMetrics } from '../core/metrics.ts'
import { findKubernetes, kubernetesObstacle } from './programs.ts'
import { ControlPlanesSettings } from '../../embedded/kit/process-settings.ts'

const { settings, log, stopped } = await startProcess('control-planes', ControlPlanesSettings)
const refused = await kubernetesObstacle()
if (refused !== undefined) await sendAndExit({ refused }, 1)
const programs = (await findKubernetes()) ?? (await sendAndExit({ refused: 'its programs are missing' }, 1))
const { data: folder, host, controlPort } = settings
const planes = await openHost({
  folder: join(folder, 'clusters'),
  programs,
  host,
  addresses: ['0.0.0.0', '::'].includes(host) ? [] : [host],
  nodes: nodesWay(),
  addons: await addonsHere(),
  guests: guestsHere(),
  memoryBytes: settings.memoryMebibytes * 1024 ** 2,
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
await stopped
await control.stop()
await planes.stop()
exitProcess(0)

function guestsHere() {
  const { imageCache: images, playgroundsDomain: appDomain, playgroundsPort: port = 0 } = settings
  if (images === undefined || appDomain === undefined || port === 0) return undefined
  const parts = { clock: systemClock, log }
  const store = openTemplateStore({ folder: images, ...parts })
  const templates = new GuestTemplates({
    folder: join(folder, 'guests'),
    images: store,
    size: GUEST_SIZE,
    hasKvm: settings.playgroundsAccelerator === 'kvm',
    ...parts,
  })
  return { templates, appDomain, port }
}

async function addonsHere() {
  const { apiUrl } = settings
  return apiUrl === undefined ? undefined : { apiUrl, known: await findAddons() }
}

function nodesWay(): NodesWay | undefined {
  if (settings.nodesListener === undefined) return undefined
  const { address, ...listener } = settings.nodesListener
  return { address, listener }
}
