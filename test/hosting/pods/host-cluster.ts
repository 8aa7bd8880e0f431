/** A host cluster whose API server, scheduler and controllers are real, and whose kubelets are not: pods are ready as
 *  soon as they are there. None is on a node: whoever deletes one does not wait for it. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type PodsHostOptions, openPodsHost } from '../../../hosting/pods/host.ts'
import { Pod } from '../../../hosting/pods/kinds.ts'
import { PART_LABEL, READER } from '../../../hosting/pods/names.ts'
import type { HostedPlanes } from '../../../hosting/core/metrics.ts'
import { openClient } from '../../../kit/kube/client.ts'
import { openHttpsTransport } from '../../../kit/kube/https-transport.ts'
import type { Store } from '../../../kit/kube/store.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { buildTool } from '../../../tools/cluster/build.ts'
import { type Hosted, isWhole, newDesired, openHosted, untilState } from '../processes/hosted.ts'
import { hostSettings } from './settings.ts'

const PARTS = { clock: systemClock, random: systemRandom, log: silentLog }
const LOOK_MILLISECONDS = 100

export interface HostClusterForTests {
  /** As its administrator. */
  readonly store: Store
  /** As the host process. */
  readonly asHost: Store
  readonly host: HostedPlanes
  /** Of its administrator. */
  adminToken(): Promise<string>
  /** As somebody by a token. */
  storeAs(token: string, fieldManager?: string): Store
  /** Ends the host process, and begins another on its folder. */
  reopen(more?: Partial<PodsHostOptions>): Promise<void>
  end(): Promise<void>
}

/** Where readers are, for whoever plays one; of this machine, so that whom nobody plays is not there at once. */
export const READER_ADDRESS = '127.86.7.1'

/** Makes pods ready until it is stopped. */
function playKubelets(store: Store): () => Promise<void> {
  const stopping = new AbortController()
  const playing = (async () => {
    while (!stopping.signal.aborted) {
      const { items } = await store.list(Pod).catch(() => ({ items: [] }))
      for (const { metadata, status } of items) {
        const { name, namespace = '' } = metadata
        const isReady = { type: 'Ready', status: 'True', lastTransitionTime: systemClock.now().toISOString() }
        const podIP = metadata.labels?.[PART_LABEL] === READER ? READER_ADDRESS : '10.0.0.1'
        const ready = { phase: 'Running', podIP, conditions: [isReady] }
        if (status?.phase !== 'Running')
          await store.patch(Pod, { namespace, name }, { status: ready }, 'status').catch(() => undefined) // deleted
      }
      await systemClock.sleep(LOOK_MILLISECONDS, stopping.signal)
    }
  })()
  return async () => {
    stopping.abort()
    await playing
  }
}

const ROOT = join(import.meta.dirname, '../../..')
const RELEASE = { name: 'svccloud', namespace: 'svccloud-system' }
const NAME = `${RELEASE.namespace}-${RELEASE.name}`
/** As the chart makes them. */
export const RIGHTS = {
  serviceAccount: `${RELEASE.name}-control-planes`,
  namespace: RELEASE.namespace,
  clusterRole: `${NAME}-control-plane-parts`,
}
const KINDS_OF_RIGHTS = /^kind: (ServiceAccount|ClusterRole|ClusterRoleBinding|ValidatingAdmissionPolicy\w*)$/m
const VALUES = ['controlPlanes.enabled=true', 'controlPlanes.regions={eu-1}', 'database.existingSecret=database']

/** Answers a token of the host process with the rights that the chart gives it, and no others. */
async function giveRights(folder: string, kubeconfig: object): Promise<string> {
  const run = promisify(execFile)
  const { name, namespace } = RELEASE
  const words = ['template', name, join(ROOT, 'charts/svccloud'), '-n', namespace, '--set', VALUES.join(',')]
  const only = ['--show-only', 'templates/control-planes.yaml']
  const { stdout } = await run(await buildTool('helm'), [...words, ...only], { maxBuffer: 16 * 1024 ** 2 })
  const manifests = stdout.split(/^---$/m).filter((text) => KINDS_OF_RIGHTS.test(text))
  const [file, access] = [join(folder, 'rights.yaml'), join(folder, 'kubeconfig')]
  // ServiceAccounts of the chart have no namespace: helm says it.
  await writeFile(file, manifests.join('\n---\n'))
  await writeFile(access, JSON.stringify(kubeconfig))
  const program = await buildTool('kubectl')
  const kubectl = (...flags: readonly string[]) => run(program, ['--kubeconfig', access, '-n', namespace, ...flags])
  await kubectl('create', 'namespace', namespace)
  await kubectl('apply', '-f', file)
  return (await kubectl('create', 'token', RIGHTS.serviceAccount, '--duration=1h')).stdout.trim()
}

export async function openHostCluster(more: Partial<PodsHostOptions> = {}): Promise<HostClusterForTests> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-host-cluster-'))
  const tools = await mkdtemp(join(tmpdir(), 'svccloud-host-cluster-'))
  const hosted: Hosted = await openHosted()
  const desired = newDesired({ podCidrs: [] })
  await hosted.host.ensure(desired)
  const { endpoint: url, certificateAuthority: ca } = await untilState(hosted, desired.id, isWhole)
  const { token } = await hosted.host.userToken(desired.id, 'admin', 3_600)
  const transports: { close(): Promise<void> }[] = []
  const storeAs = (bearer: string, fieldManager = 'svccloud') => {
    const access = { url: url ?? '', ca: ca ?? '', authorization: async () => `Bearer ${bearer}` }
    const https = openHttpsTransport(access)
    transports.push(https)
    return openClient({ transport: https.transport, fieldManager, ...PARTS })
  }
  const store = storeAs(token)
  const stopKubelets = playKubelets(storeAs(token, 'kubelet'))
  const clusters = [{ name: 'host', cluster: { server: url, 'certificate-authority-data': btoa(ca ?? '') } }]
  const contexts = [{ name: 'host', context: { cluster: 'host', user: 'admin' } }]
  const ownToken = await giveRights(tools, {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'host',
    clusters,
    contexts,
    users: [{ name: 'admin', user: { token } }],
  })
  const asHost = storeAs(ownToken)
  const open = (changed: Partial<PodsHostOptions> = {}) =>
    openPodsHost({ ...PARTS, folder, cluster: asHost, settings: hostSettings({ rights: RIGHTS }), ...more, ...changed })
  let host = await open()
  return {
    store,
    asHost,
    storeAs,
    adminToken: async () => token,
    get host() {
      return host
    },
    async reopen(changed) {
      await host.stop()
      host = await open(changed)
    },
    async end() {
      await host.stop()
      await stopKubelets()
      await Promise.all(transports.map((each) => each.close()))
      await hosted.end()
      for (const each of [folder, tools]) await rm(each, { recursive: true, force: true })
    },
  }
}
