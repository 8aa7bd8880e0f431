/** A cluster with a pool of nodes, by the real controllers and a real control plane. Hosts are simulated; what their
 *  guests would run runs on this machine instead, a real kubelet and containerd for each server of the pool, with what
 *  that was handed. */
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findCluster } from '../../db/kubernetes-cluster/index.ts'
import type { Database } from '../../db/kit/open.ts'
import type { HostOptions } from '../../hosting/processes/host.ts'
import type { ControlPlaneState } from '../../integrations/control-planes/control.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { KubernetesCluster } from '../../resources/kubernetes-cluster/index.ts'
import { Network, type NetworkSpec } from '../../resources/network/index.ts'
import { NodePool, type NodePoolSpec } from '../../resources/node-pool/index.ts'
import { createAccount } from '../accounts.ts'
import { type Cloud, openCloud, ZONE } from '../controllers/cloud.ts'
import { documentsOf, type NodeDocument, offerNodes } from '../controllers/nouns/node-pool/documents.ts'
import { type Hosted, isWhole, openHosted, untilState } from '../hosting/processes/hosted.ts'
import { until } from '../eventually.ts'
import { kubectlOf } from './kubectl.ts'
import { type Machine, startMachine } from './machine.ts'
import { kubeconfigFor, relayTunnel, startNode } from './node.ts'

const [CLUSTER, POOL] = ['shop', 'web']
const WAIT_MILLISECONDS = 240_000
const PLAY_MILLISECONDS = 300
const run = promisify(execFile)

interface Played {
  readonly release: string
  readonly token: string
  /** Rejects when its node could not be started. */
  readonly machine: Promise<Machine>
  isLedTo: boolean
}

export interface PlayedPool {
  readonly hosted: Hosted
  readonly cloud: Cloud
  readonly controlPlaneId: string
  /** As an administrator of the cluster; a command that fails throws. */
  kubectl(...flags: readonly string[]): Promise<string>
  apply(...objects: readonly object[]): Promise<void>
  change(spec: Partial<NodePoolSpec>): Promise<void>
  upgradeControlPlane(version: string): Promise<void>
  /** The names of its nodes, once there are so many, all ready and of that minor version, and nothing is changed. */
  settled(count: number, version?: string): Promise<readonly string[]>
  end(): Promise<void>
}

/** Of one control plane, by its host. */
interface PoolOptions {
  readonly folder: string
  readonly version: string
  readonly host?: Partial<HostOptions>
  readonly pool: Partial<NodePoolSpec>
}

/** With its first nodes. */
export async function startPool(db: Database, { folder, version, host = {}, pool }: PoolOptions): Promise<PlayedPool> {
  const ends: (() => Promise<unknown>)[] = []
  const end = async () => {
    for (const each of ends.toReversed()) await each()
  }
  try {
    const address = await addAddress(ends)
    const hosted = await openHosted({ host: address, addresses: [address], nodes: { address }, ...host })
    ends.push(() => hosted.end())
    const { cloud, namespace, accountId } = await openAccountIn(db, hosted, ends)
    await makeCluster(cloud, namespace, version)
    const controlPlaneId = await until(
      'the control plane',
      async () => (await findCluster(db, { accountId, clusterId: CLUSTER }))?.controlPlaneId ?? '',
      (id) => id !== '',
      WAIT_MILLISECONDS,
    )
    const state = await untilState(
      hosted,
      controlPlaneId,
      (now) => isWhole(now) && now.forNodes !== null,
      WAIT_MILLISECONDS,
    )
    const relay = await relayTunnel(state)
    ends.push(async () => relay.close())
    const player = new Player({ hosted, cloud, folder, state })
    ends.push(() => player.end())
    const { token } = await hosted.host.userToken(controlPlaneId, 'admin', 7_200)
    const kubeconfigFile = join(folder, 'kubeconfig')
    await writeFile(kubeconfigFile, JSON.stringify(kubeconfigFor(state, { token })), { mode: 0o600 })
    const played = playedPool({ hosted, cloud, controlPlaneId, namespace, player, kubeconfigFile, end })
    const spec = NodePool.spec.parse({
      clusterId: CLUSTER,
      zone: ZONE,
      name: POOL,
      plan: 'tiny',
      version,
      count: 1,
      ...pool,
    })
    await cloud.kubectl.create(NodePool, { metadata: { namespace, name: POOL }, spec })
    await played.settled(spec.count)
    return played
  } catch (error) {
    await end()
    throw error
  }
}

/** Of this machine, by which the others reach it. */
async function addAddress(ends: (() => Promise<unknown>)[]): Promise<string> {
  const address = `10.212.${randomInt(256)}.1`
  await run('ip', ['address', 'add', `${address}/32`, 'dev', 'lo'])
  ends.push(() => run('ip', ['address', 'delete', `${address}/32`, 'dev', 'lo']))
  return address
}

async function openAccountIn(db: Database, hosted: Hosted, ends: (() => Promise<unknown>)[]) {
  const cloud = await openCloud(db)
  ends.push(() => cloud.close())
  await offerNodes(cloud)
  ends.push(cloud.startControllers(undefined, { controlPlanes: { regions: ['eu-1'], control: hosted.host } }))
  ends.push(cloud.startAgent())
  const accountId = await createAccount(db)
  await cloud.openAccount(accountId)
  await until(
    'private networks and Kubernetes',
    () => cloud.kubectl.get(Zone, { name: ZONE }),
    (zone) => zone?.status?.hasPrivateNetworks === true && zone.status.kubernetesReleases !== undefined,
    WAIT_MILLISECONDS,
  )
  return { cloud, accountId, namespace: accountNamespace(accountId) }
}

async function makeCluster({ kubectl }: Cloud, namespace: string, version: string): Promise<void> {
  const ipv4Cidr = `10.211.${randomInt(256)}.0/24`
  const back = { zone: ZONE, name: 'back', ipv4Cidr } as NetworkSpec // without defaults
  await kubectl.create(Network, { metadata: { namespace, name: 'back' }, spec: back })
  const spec = KubernetesCluster.spec.parse({ zone: ZONE, name: CLUSTER, networkId: 'back', version })
  await kubectl.create(KubernetesCluster, { metadata: { namespace, name: CLUSTER }, spec })
}

interface PlayerOptions {
  readonly hosted: Hosted
  readonly cloud: Cloud
  readonly folder: string
  readonly state: ControlPlaneState
}

/** For each server of the pool that was configured as a node there is one, until that is taken away. */
class Player {
  readonly #options: PlayerOptions
  readonly #nodes = new Map<string, Played>()
  readonly #ending = new AbortController()
  readonly #running: Promise<void>
  #begun = 0
  /** What kept the nodes from it last. */
  fault = ''

  constructor(options: PlayerOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  async end(): Promise<void> {
    this.#ending.abort()
    await this.#running
    for (const name of this.#nodes.keys()) await this.#stop(name)
  }

  async #run(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      await this.#follow().catch((error: unknown) => {
        this.fault = String(error)
      })
      await sleep(PLAY_MILLISECONDS)
    }
  }

  async #follow(): Promise<void> {
    const { cloud, hosted, state } = this.#options
    const documents = await documentsOf(cloud, POOL)
    for (const [name, { release, token }] of this.#nodes) {
      const now = documents.get(name)
      // Another server has its name by now.
      const isOther = now?.bootstrapToken !== undefined && (now.release !== release || now.bootstrapToken !== token)
      if (now === undefined || isOther) await this.#stop(name)
    }
    for (const [name, document] of documents)
      if (!this.#nodes.has(name) && document.bootstrapToken !== undefined) this.#start(name, document)
    for (const { name, podCidr } of await hosted.host.nodes(state.id)) {
      const played = this.#nodes.get(name)
      if (played === undefined || played.isLedTo || podCidr === '') continue
      await (await played.machine).lead(podCidr)
      played.isLedTo = true
    }
  }

  #start(name: string, document: NodeDocument): void {
    const { folder, state } = this.#options
    const { bootstrapToken = '', release } = document
    const begin = async () => {
      const machine = await startMachine(name, join(folder, `${name}-${this.#begun++}`))
      await startNode(machine, { ...document, state, bootstrapToken }).catch(async (error: unknown) => {
        this.fault = `${String(error)}\n${await machine.log('kubelet')}`
      })
      return machine
    }
    this.#nodes.set(name, { release, token: bootstrapToken, machine: begin(), isLedTo: false })
  }

  async #stop(name: string): Promise<void> {
    const played = this.#nodes.get(name)
    this.#nodes.delete(name)
    await (await played?.machine)?.end()
  }
}

interface PlayedParts extends Pick<PlayedPool, 'hosted' | 'cloud' | 'controlPlaneId' | 'end'> {
  readonly namespace: string
  readonly player: Player
  readonly kubeconfigFile: string
}

function playedPool({
  hosted,
  cloud,
  controlPlaneId,
  namespace,
  player,
  kubeconfigFile,
  end,
}: PlayedParts): PlayedPool {
  const kubectl = kubectlOf({ kubeconfigFile })
  const [clusterKey, poolKey] = [
    { namespace, name: CLUSTER },
    { namespace, name: POOL },
  ]
  return {
    hosted,
    cloud,
    controlPlaneId,
    kubectl,
    end,
    async apply(...items) {
      const file = `${kubeconfigFile}.objects`
      await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
      await kubectl('apply', '-f', file)
    },
    change: async (spec) => void (await cloud.kubectl.patch(NodePool, poolKey, { spec })),
    async upgradeControlPlane(version) {
      await cloud.kubectl.patch(KubernetesCluster, clusterKey, { spec: { version } })
      await until(
        'the upgrade',
        () => cloud.kubectl.get(KubernetesCluster, clusterKey),
        (cluster) => cluster?.status?.version === version && cluster.status.operation?.status === 'succeeded',
        WAIT_MILLISECONDS,
      )
    },
    async settled(count, version = '') {
      const pool = await until(
        `${count} nodes`,
        () => cloud.kubectl.get(NodePool, poolKey),
        (found) =>
          found?.status?.operation?.status === 'succeeded' &&
          found.spec.count === count &&
          found.status.nodes?.length === count &&
          found.status.nodes.every(
            ({ isReady, kubeletVersion }) => isReady && kubeletVersion.startsWith(`v${version}`),
          ),
        WAIT_MILLISECONDS,
      ).catch((error: unknown) => {
        throw new Error(player.fault, { cause: error })
      })
      return (pool?.status?.nodes ?? []).map(({ hostname }) => hostname)
    },
  }
}
