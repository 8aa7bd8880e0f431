/** All control planes of this machine: takes in as many as its memory has room for, and brings back those of the last
 *  run. */
import { mkdir, readdir, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { CallRefusal, type RefusalReason } from '../../kit/control-planes/calls.ts'
import type { ControlPlaneDesired, ControlPlanes } from '../../kit/control-planes/control.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { syncToDisk } from '../../kit/sys/durable-file.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import type { Random } from '../../kit/sys/random.ts'
import { probePort } from '../ports.ts'
import { putJoinToken, removeJoinToken, requestAdminToken } from './cluster-objects.ts'
import { ControlPlane, type ControlPlaneOptions } from './control-plane.ts'
import { LOOPBACK } from './credentials.ts'
import { openIssuerDoor } from './issuer-door.ts'
import type { KubeApi } from './kube-api.ts'
import { openNodeDoor } from './node-door.ts'
import { approveServing, drainNode, listNodes, listServingRequests, markNode, removeNode } from './nodes.ts'
import type { ControlPlanePrograms } from './programs.ts'
import { BUILD_KUBERNETES_COMMAND } from '../../kit/control-planes/versions.ts'
import { type ControlPlaneRecord, readRecord, writeRecord } from './record.ts'
import { listSnapshots, removeSnapshot, writeSnapshot } from './snapshots.ts'

export interface HostOptions {
  readonly folder: string
  readonly programs: ControlPlanePrograms
  /** Endpoints listen on it. */
  readonly host: string
  readonly addresses: readonly string[]
  /** How nodes reach this machine; undefined when they do not. */
  readonly nodes?: NodesWay | undefined
  /** For all of them together. */
  readonly memoryBytes: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface NodesWay {
  readonly address: string
  /** Where connections of theirs come in that somebody else listens for, and on which ports that does; without it they
   *  reach the loopback address of this machine. */
  readonly door?: { readonly socket: string; readonly firstPort: number; readonly ports: number }
}

export interface ControlPlaneHost extends ControlPlanes {
  /** Of one program of one control plane; undefined while it does not run. */
  pid(id: string, program: string): number | undefined
  /** Ends all programs in order; everything stays for the next start. */
  stop(): Promise<void>
}

const MEBIBYTE = 1024 ** 2
/** Of resident memory without load, with its text. */
const BYTES_OF_ONE = 490 * MEBIBYTE
const BYTES_OF_THREE = 1_140 * MEBIBYTE
const bytesOf = (replicas: number): number => (replicas === 1 ? BYTES_OF_ONE : BYTES_OF_THREE)

/** What the platform asked for is not possible. */
export class Refused extends Error {
  readonly reason: RefusalReason
  constructor(reason: RefusalReason, detail: string) {
    super(detail)
    this.reason = reason
  }

  toBody(): CallRefusal {
    return CallRefusal.parse({ reason: this.reason, detail: this.message })
  }
}

const minorOf = (release: string): number => Number(release.split('.')[1])

/** Of the disk that the folder is on. */
async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** Those there are, by id. */
class Planes {
  readonly #options: HostOptions & Pick<ControlPlaneOptions, 'issuerDoor'>
  readonly #byId = new Map<string, ControlPlane>()
  #changing: Promise<unknown> = Promise.resolve()

  constructor(options: HostOptions & Pick<ControlPlaneOptions, 'issuerDoor'>) {
    this.#options = options
  }

  begin(folder: string, record: ControlPlaneRecord): ControlPlane {
    const nodeAddress = this.#options.nodes?.address
    const plane = new ControlPlane({ ...this.#options, folder, record, nodeAddress })
    this.#byId.set(record.desired.id, plane)
    plane.start()
    return plane
  }

  all(): readonly ControlPlane[] {
    for (const [id, { isGone }] of this.#byId) if (isGone) this.#byId.delete(id)
    return [...this.#byId.values()]
  }

  find(id: string): ControlPlane | undefined {
    return this.all().find(({ record }) => record.desired.id === id)
  }

  reservedBytes(): number {
    return this.all().reduce((sum, { record }) => sum + bytesOf(record.replicas.length), 0)
  }

  /** Throws Refused for one that is not there, or leaves. */
  known(id: string): ControlPlane {
    const plane = this.find(id)
    if (plane === undefined || plane.record.isRemoved) throw new Refused('not_found', 'control plane')
    return plane
  }

  api(id: string): KubeApi {
    const api = this.known(id).api()
    if (api === undefined) throw new Error('no API server is ready')
    return api
  }

  /** With ports for what nodes reach, where it has none yet and they can have some. */
  async withWay(record: ControlPlaneRecord): Promise<ControlPlaneRecord> {
    const { nodes, programs } = this.#options
    if (nodes === undefined || programs.tunnel === undefined) return { ...record, tunnel: null }
    const port = () => probePort(LOOPBACK, 0)
    const tunnel = record.tunnel ?? { agents: await port(), admin: await port(), health: await port() }
    if (nodes.door === undefined) return { ...record, tunnel, nodePorts: null }
    const { firstPort, ports } = nodes.door
    const used = new Set(this.all().flatMap((plane) => plane.record.nodePorts?.endpoint ?? []))
    const free = Array.from({ length: ports / 2 }, (_, pair) => firstPort + 2 * pair).find((each) => !used.has(each))
    if (free === undefined) throw new Refused('no_capacity', 'The host of control planes has no ports left for nodes.')
    return { ...record, tunnel, nodePorts: record.nodePorts ?? { endpoint: free, tunnel: free + 1 } }
  }

  /** One after the other: each counts what the others take. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#changing.then(work)
    this.#changing = result.catch(() => undefined) // whoever asked is told
    return result
  }

  async create(desired: ControlPlaneDesired): Promise<ControlPlane> {
    const { folder, memoryBytes, host } = this.#options
    if (this.reservedBytes() + bytesOf(desired.replicas) > memoryBytes)
      throw new Refused('no_capacity', 'The host of control planes has no memory left for another one.')
    const at = join(folder, desired.id)
    await rm(at, { recursive: true, force: true }) // of one that was promised to nobody
    await mkdir(at, { mode: 0o700 })
    const record = await this.withWay(await newRecord(desired, host))
    await writeRecord(at, record)
    await syncToDisk(folder)
    return this.begin(at, record)
  }
}

/** Serves once this resolves; the control planes of the last run come back meanwhile. */
export async function openHost(options: HostOptions): Promise<ControlPlaneHost> {
  const { folder, programs, clock, memoryBytes } = options
  await makeFolder(folder, 0o700)
  const issuerDoor = await openIssuerDoor({ ...options, issuerOf: (id) => planes.find(id)?.record.desired.issuer })
  const planes: Planes = new Planes({ ...options, issuerDoor })
  for (const name of await readdir(folder)) {
    const at = join(folder, name)
    const record = await readRecord(at)
    // Removed, or not yet promised, when the last run ended.
    if (record === undefined) await rm(at, { recursive: true, force: true })
    else {
      const whole = await planes.withWay(record)
      await writeRecord(at, whole)
      planes.begin(at, whole)
    }
  }
  const nodeDoor =
    options.nodes?.door &&
    (await openNodeDoor(options.nodes.door.socket, (client, port) =>
      planes.all().some((plane) => plane.takeNode(client, port)),
    ))
  return {
    offer: async () => ({
      driver: 'process',
      releases: programs.releases.map(({ release }) => release),
      memoryBytes,
      reservedBytes: planes.reservedBytes(),
      bytesOfOne: BYTES_OF_ONE,
      bytesOfThree: BYTES_OF_THREE,
      nodeCount: 1,
      etcdBytes: await freeBytes(folder),
      nodesObstacle: obstacleOf(options),
    }),
    ensure: (desired) =>
      planes.inTurn(async () => {
        if (!programs.releases.some(({ release }) => release === desired.release))
          throw new Refused('state_not_allowed', `Kubernetes ${desired.release} is not offered here.`)
        const plane = planes.find(desired.id)
        if (plane === undefined) return (await planes.create(desired)).state()
        judgeChange(plane.record, desired)
        await plane.change((record) =>
          JSON.stringify(record.desired) === JSON.stringify(desired) ? record : { ...record, desired },
        )
        return plane.state()
      }),
    get: async (id) => planes.find(id)?.state(),
    async remove(id) {
      const plane = planes.find(id)
      await plane?.change((record) => ({ ...record, isRemoved: true }))
      return plane === undefined
    },
    ...snapshotCalls((id) => planes.known(id), clock),
    ...clusterCalls((id) => planes.api(id), options),
    pid: (id, program) => planes.find(id)?.pid(program),
    async stop() {
      await planes.inTurn(async () => {})
      nodeDoor?.close()
      await Promise.all(planes.all().map((plane) => plane.stop()))
      await issuerDoor.stop()
    },
  }
}

const obstacleOf = ({ nodes, programs }: HostOptions): string => {
  if (programs.tunnel === undefined)
    return `the tunnel to them is not built: ${BUILD_KUBERNETES_COMMAND}, and start again`
  return nodes === undefined ? 'servers do not reach the host of control planes' : ''
}

function clusterCalls(
  apiOf: (id: string) => KubeApi,
  { clock, random }: HostOptions,
): Pick<
  ControlPlanes,
  | 'nodes'
  | 'adminToken'
  | 'joinToken'
  | 'removeJoinToken'
  | 'servingRequests'
  | 'approveServing'
  | 'markNode'
  | 'drain'
  | 'removeNode'
> {
  return {
    nodes: async (id) => listNodes(apiOf(id)),
    adminToken: async (id, seconds) => requestAdminToken(apiOf(id), seconds),
    joinToken: async (id, tokenId, pool, seconds) => {
      const expiresAt = new Date(clock.now().getTime() + seconds * 1_000)
      return putJoinToken(apiOf(id), { tokenId, pool, expiresAt, random })
    },
    removeJoinToken: async (id, tokenId, pool) => removeJoinToken(apiOf(id), tokenId, pool),
    servingRequests: async (id) => listServingRequests(apiOf(id)),
    approveServing: async (id, request) => approveServing(apiOf(id), request),
    markNode: async (id, node, marks) => markNode(apiOf(id), node, marks),
    drain: async (id, node) => drainNode(apiOf(id), node),
    removeNode: async (id, node) => removeNode(apiOf(id), node),
  }
}

function judgeChange(record: ControlPlaneRecord, desired: ControlPlaneDesired): void {
  if (record.isRemoved) throw new Refused('state_not_allowed', 'The control plane is being removed.')
  if (record.replicas.length !== desired.replicas)
    throw new Refused('state_not_allowed', 'The number of replicas does not change.')
  const [from, to] = [minorOf(record.desired.release), minorOf(desired.release)]
  if (to < from) throw new Refused('state_not_allowed', 'Kubernetes does not go back to an older minor version.')
  if (to > from + 1) throw new Refused('state_not_allowed', 'Kubernetes goes up one minor version at a time.')
}

async function newRecord(desired: ControlPlaneDesired, host: string): Promise<ControlPlaneRecord> {
  const port = () => probePort(LOOPBACK, 0)
  const replicas = []
  for (let replica = 0; replica < desired.replicas; replica++)
    replicas.push({ etcdClient: await port(), etcdPeer: await port(), api: await port() })
  return {
    desired,
    endpointPort: await probePort(host, 0),
    replicas,
    release: null,
    tunnel: null,
    nodePorts: null,
    generation: 0,
    restore: null,
    restoreId: null,
    isRemoved: false,
  }
}

function snapshotCalls(
  known: (id: string) => ControlPlane,
  clock: Clock,
): Pick<ControlPlanes, 'snapshot' | 'snapshots' | 'removeSnapshot' | 'restore'> {
  return {
    async snapshot(id, snapshotId) {
      const plane = known(id)
      const { release, desired } = plane.record
      const before = (await listSnapshots(plane.snapshotFolder)).find((each) => each.id === snapshotId)
      if (before !== undefined) return before
      const snapshot = {
        id: snapshotId,
        phase: 'running' as const,
        release: release ?? desired.release,
        sizeBytes: 0,
        createdAt: clock.now().toISOString(),
        detail: '',
      }
      await writeSnapshot(plane.snapshotFolder, snapshot)
      plane.take(snapshot)
      return snapshot
    },
    snapshots: async (id) => listSnapshots(known(id).snapshotFolder),
    removeSnapshot: async (id, snapshotId) => {
      const plane = known(id)
      if (plane.record.restore?.snapshotId === snapshotId)
        throw new Refused('state_not_allowed', 'The snapshot is being restored.')
      await removeSnapshot(plane.snapshotFolder, snapshotId)
    },
    async restore(id, restoreId, snapshotId) {
      const plane = known(id)
      const snapshot = (await listSnapshots(plane.snapshotFolder)).find((each) => each.id === snapshotId)
      if (snapshot?.phase !== 'done') throw new Refused('not_found', 'snapshot')
      const { restore } = plane.record
      if (restore !== null && restore.id !== restoreId)
        throw new Refused('state_not_allowed', 'Another restore is under way.')
      await plane.change((record) =>
        record.restore !== null || record.restoreId === restoreId
          ? record
          : { ...record, restore: { id: restoreId, snapshotId, isWritten: false } },
      )
      return plane.state()
    },
  }
}
