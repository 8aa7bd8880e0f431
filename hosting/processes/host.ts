/** All control planes of this machine. Accepts as many as its memory allows, and restarts those of the last run. */
import { mkdir, readdir, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { ControlPlaneDesired, ControlPlaneOffer } from '../../integrations/control-planes/control.ts'
import { LOOPBACK } from '../core/credentials.ts'
import type { HostedPlanes } from '../core/metrics.ts'
import { beginRestore, changeDesired, earliest, fromPlace, requireOffered, snapshotCalls } from '../core/planes.ts'
import { Refused } from '../core/refused.ts'
import { BUILD_KUBERNETES_COMMAND } from '../../domain/kubernetes-cluster/versions.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { syncToDisk } from '../../kit/sys/durable-file.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import type { Random } from '../../kit/sys/random.ts'
import { holdPort, probePort } from '../../embedded/kit/ports.ts'
import { ControlPlane, type ControlPlaneOptions } from './control-plane.ts'
import { openAppsListener } from './guests/apps.ts'
import type { GuestSize } from './guests/machine.ts'
import type { GuestTemplates } from './guests/template.ts'
import { openIssuerListener } from './issuer-listener.ts'
import { openNodeListener } from './node-listener.ts'
import type { ControlPlanePrograms } from './programs.ts'
import { type ClusterReading, readingCalls } from '../core/reading/tasks.ts'
import { openUsers, shareForUsers } from './users.ts'
import { type ControlPlaneRecord, portsOf, readRecord, writeRecord } from './record.ts'

export interface HostOptions {
  readonly folder: string
  readonly programs: ControlPlanePrograms
  /** Address on which endpoints listen. */
  readonly host: string
  readonly addresses: readonly string[]
  /** How nodes reach this machine; undefined when they cannot. */
  readonly nodes?: NodesWay | undefined
  /** The template of guests for playgrounds, and the domain of their Ingresses; no playgrounds when absent. */
  readonly guests?:
    | {
        readonly templates: GuestTemplates
        readonly appDomain: string
        /** Port on which this machine serves the apps of playgrounds. */
        readonly port: number
      }
    | undefined
  /** Add-ons that run beside each control plane; none when absent. */
  readonly addons?: ControlPlaneOptions['addons'] | undefined
  /** For all control planes together. */
  readonly memoryBytes: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface NodesWay {
  readonly address: string
  /** Socket for connections of nodes that another process accepts, and the ports of that process. Without it, nodes
   *  connect to the loopback address of this machine. */
  readonly listener?: { readonly socket: string; readonly firstPort: number; readonly ports: number }
}

/** `stop` stops all programs in order. */
export interface ControlPlaneHost extends HostedPlanes {
  /** Process id of one program of one control plane; undefined while it does not run. */
  pid(id: string, program: string): number | undefined
}

const MEBIBYTE = 1024 ** 2
/** Memory of one control plane without load and without add-ons, plus a tenth. Its reader accounts for 70 MiB. */
const BYTES_OF_ONE = 330 * MEBIBYTE
const BYTES_OF_THREE = 810 * MEBIBYTE
/** The code of all programs, including add-ons and two releases, which is in memory only once. */
const BYTES_OF_TEXT = 650 * MEBIBYTE
/** Memory that is available for control planes. */
const roomOf = ({ memoryBytes }: HostOptions): number => Math.max(0, memoryBytes - BYTES_OF_TEXT)
const bytesOf = ({ addons }: HostOptions, replicas: number): number =>
  (addons?.known ?? []).reduce((sum, { bytes }) => sum + bytes, replicas === 1 ? BYTES_OF_ONE : BYTES_OF_THREE)
/** Overhead of a guest: its system programs, and QEMU beside it. */
const GUEST_OVERHEAD_MEBIBYTES = 512
const EMULATOR_MEBIBYTES = 600
export const GUEST_SIZE: GuestSize = { vcpus: 2, memoryMebibytes: 1_024 + GUEST_OVERHEAD_MEBIBYTES }
const GUEST_BYTES = (GUEST_SIZE.memoryMebibytes + EMULATOR_MEBIBYTES) * MEBIBYTE
/** A playground has no add-ons, which are for clusters. */
const bytesWithGuest = BYTES_OF_ONE + GUEST_BYTES
const bytesFor = (options: HostOptions, { guest, replicas }: ControlPlaneDesired): number =>
  guest === undefined ? bytesOf(options, replicas) : bytesWithGuest

const releasesOf = ({ programs }: HostOptions): string[] => programs.releases.map(({ release }) => release)

const NO_ADDONS: ControlPlaneOptions['addons'] = { apiUrl: '', known: [] }

const TUNNEL_MISSING = `the operator has not built the tunnel to them: ${BUILD_KUBERNETES_COMMAND}, and start again`

/** Free space on the disk of the folder. */
async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** Initial state of a control plane. */
interface Beginning {
  /** Writes the initial state to the folder; returns the pending work for the record. */
  prepare?(folder: string): Promise<Pick<ControlPlaneRecord, 'restore'>>
  /** The port that clients know; null when there are no clients yet. */
  readonly endpointPort?: number | null
}

/** The control planes, by id. */
class Planes {
  readonly #options: HostOptions & Pick<ControlPlaneOptions, 'issuerListener' | 'users'>
  readonly #byId = new Map<string, ControlPlane>()
  #changing: Promise<unknown> = Promise.resolve()

  constructor(options: HostOptions & Pick<ControlPlaneOptions, 'issuerListener' | 'users'>) {
    this.#options = options
  }

  begin(folder: string, record: ControlPlaneRecord): ControlPlane {
    const { nodes, addons = NO_ADDONS, guests } = this.#options
    const nodeAddress = nodes?.address
    const more = { addons, folder, record, nodeAddress, guests: guests && { ...guests, size: GUEST_SIZE } }
    const plane = new ControlPlane({ ...this.#options, ...more })
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
    return this.all().reduce((sum, { record }) => sum + bytesFor(this.#options, record.desired), 0)
  }

  /** Throws Refused when it does not exist or is being removed. */
  known(id: string): ControlPlane {
    const plane = this.find(id)
    if (plane === undefined || plane.record.isRemoved) throw new Refused('gone', 'the control plane')
    return plane
  }

  /** Throws when no API server is ready. */
  cluster(id: string): ClusterReading {
    const cluster = this.known(id).cluster()
    if (cluster === undefined) throw new Error('no API server is ready')
    return cluster
  }

  /** Assigns an unused user, if this host has users. */
  withUser(record: ControlPlaneRecord): ControlPlaneRecord {
    const { users } = this.#options
    if (users === undefined || record.user !== null) return record
    const used = new Set(this.all().map((plane) => plane.record.user))
    const user = Array.from({ length: users.count }, (_, index) => index).find((each) => !used.has(each))
    if (user === undefined) throw new Refused('no_capacity', 'The host of control planes has no users left.')
    return { ...record, user }
  }

  /** Assigns ports for nodes, if it has none yet and nodes can reach it. */
  async withWay(record: ControlPlaneRecord): Promise<ControlPlaneRecord> {
    const { nodes, programs } = this.#options
    const isGuest = record.desired.guest !== undefined
    if ((nodes === undefined && !isGuest) || programs.tunnel === undefined) return { ...record, tunnel: null }
    const port = () => probePort(LOOPBACK, 0)
    const tunnel = record.tunnel ?? { agents: await port(), admin: await port(), health: await port() }
    if (nodes?.listener === undefined || isGuest) return { ...record, tunnel, nodePorts: null }
    const { firstPort, ports } = nodes.listener
    const used = new Set(this.all().flatMap((plane) => plane.record.nodePorts?.endpoint ?? []))
    const free = Array.from({ length: ports / 2 }, (_, pair) => firstPort + 2 * pair).find((each) => !used.has(each))
    if (free === undefined) throw new Refused('no_capacity', 'The host of control planes has no ports left for nodes.')
    return { ...record, tunnel, nodePorts: record.nodePorts ?? { endpoint: free, tunnel: free + 1 } }
  }

  /** Runs work one at a time, because each control plane counts the memory of the others. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#changing.then(work)
    this.#changing = result.catch(() => undefined) // the caller gets the error
    return result
  }

  async create(
    desired: ControlPlaneDesired,
    { prepare = async () => ({ restore: null }), endpointPort = null }: Beginning = {},
  ): Promise<ControlPlane> {
    const { folder, host } = this.#options
    if (this.reservedBytes() + bytesFor(this.#options, desired) > roomOf(this.#options))
      throw new Refused('no_capacity', 'The host of control planes has no memory left for another one.')
    const at = join(folder, desired.id)
    await rm(at, { recursive: true, force: true }) // left over from a request that was not confirmed
    await mkdir(at, { mode: 0o700 })
    const begun = await prepare(at)
    const used = this.all().map(({ record: other }) => other.endpointPort)
    const port = endpointPort === null || used.includes(endpointPort) ? 0 : endpointPort
    const record = await this.withWay(this.withUser({ ...(await newRecord(desired, host, port)), ...begun }))
    await writeRecord(at, record)
    await syncToDisk(folder)
    return this.begin(at, record)
  }
}

/** Restarts the control planes of the last run. */
async function bringBack(planes: Planes, { folder, log }: HostOptions): Promise<void> {
  const found: { readonly at: string; readonly record: ControlPlaneRecord }[] = []
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue
    const at = join(folder, entry.name)
    const record = await readRecord(at)
    // Removed, or not yet confirmed, when the last run ended.
    if (record === undefined) await rm(at, { recursive: true, force: true })
    else found.push({ at, record })
  }
  // Control planes with a user keep it: the others choose from the rest.
  for (const { at, record } of found.toSorted((one, other) => order(one.record) - order(other.record))) {
    await holdPorts(record, log)
    const whole = await planes.withWay(planes.withUser(record))
    await writeRecord(at, whole)
    planes.begin(at, whole)
  }
}

/** Reserves ports before others choose them, while nobody listens there yet. */
async function holdPorts(record: ControlPlaneRecord, log: Logger): Promise<void> {
  for (const port of portsOf(record))
    await holdPort(port).catch((error: unknown) => {
      log.warn('a port of a control plane is in use', { controlPlane: record.desired.id, port, error })
    })
}

const order = ({ user }: ControlPlaneRecord): number => (user === null ? 1 : 0)

/** Serves once this resolves; the control planes of the last run restart meanwhile. */
export async function openHost(options: HostOptions): Promise<ControlPlaneHost> {
  const { folder } = options
  await makeFolder(folder, 0o700)
  const issuerListener = await openIssuerListener({
    ...options,
    issuerOf: (id) => planes.find(id)?.record.desired.issuer,
  })
  const users = await openUsers(folder, options)
  const programs = users === undefined ? options.programs : await shareForUsers(options.programs)
  const planes: Planes = new Planes({ ...options, programs, users, issuerListener })
  await bringBack(planes, options)
  const nodeListener =
    options.nodes?.listener &&
    (await openNodeListener(options.nodes.listener.socket, (client, port) =>
      planes.all().some((plane) => plane.takeNode(client, port)),
    ))
  const appsListener = await appsListenerOf(options, planes)
  return {
    offer: () => offerOf(options, planes),
    ensure: (desired) =>
      planes.inTurn(async () => {
        requireOffered(releasesOf(options), desired)
        const obstacle = desired.guest === undefined ? '' : await guestsObstacle(options)
        if (obstacle !== '') throw new Refused('state_not_allowed', `The host has no guests: ${obstacle}.`)
        const plane = planes.find(desired.id)
        if (plane === undefined) return (await planes.create(desired)).state()
        return changeDesired(plane, desired)
      }),
    get: async (id) => planes.find(id)?.state(),
    async remove(id) {
      const plane = planes.find(id)
      await plane?.change((record) => ({ ...record, isRemoved: true }))
      return plane === undefined
    },
    async grant(id, addon, grant) {
      if (!(await planes.known(id).grant(addon, grant)))
        throw new Refused('state_not_allowed', `The add-on ${addon} does not run here.`)
    },
    ...snapshotCalls((id) => planes.known(id)),
    recover: (desired, place, restoreId, snapshotId, endpointPort) =>
      planes.inTurn(async () => {
        requireOffered(releasesOf(options), desired)
        const known = planes.find(desired.id)
        if (known !== undefined) return beginRestore(known, restoreId, snapshotId)
        const prepare = fromPlace(options, place, { restoreId, snapshotId })
        return (await planes.create(desired, { prepare, endpointPort })).state()
      }),
    ...readingCalls((id) => planes.cluster(id)),
    pid: (id, program) => planes.find(id)?.pid(program),
    certificatesEndAt: () => earliest(planes.all().flatMap((plane) => plane.certificatesEndAt() ?? [])),
    async stop() {
      await planes.inTurn(async () => {})
      nodeListener?.close()
      await appsListener?.stop()
      await Promise.all(planes.all().map((plane) => plane.stop()))
      options.guests?.templates.stop()
      await issuerListener.stop()
    },
  }
}

const appsListenerOf = (
  { guests, host, clock, log }: HostOptions,
  planes: Planes,
): Promise<{ stop(): Promise<void> }> | undefined =>
  guests &&
  openAppsListener({
    host,
    port: guests.port,
    domain: guests.appDomain,
    clock,
    log,
    playground: (name) => planes.all().flatMap((plane) => plane.playground(name) ?? [])[0],
  })

async function offerOf(options: HostOptions, planes: Planes): Promise<ControlPlaneOffer> {
  const { folder, guests } = options
  return {
    driver: 'process',
    releases: releasesOf(options),
    memoryBytes: roomOf(options),
    reservedBytes: planes.reservedBytes(),
    bytesOfOne: bytesOf(options, 1),
    bytesOfThree: bytesOf(options, 3),
    nodeCount: 1,
    etcdBytes: await freeBytes(folder),
    nodesObstacle: obstacleOf(options),
    guests: {
      obstacle: await guestsObstacle(options),
      bytesOfOne: bytesWithGuest,
      appDomain: guests?.appDomain ?? '',
    },
  }
}

const guestsObstacle = async ({ guests, programs }: HostOptions): Promise<string> => {
  if (guests === undefined) return 'this host runs no guests'
  return programs.tunnel === undefined ? TUNNEL_MISSING : guests.templates.obstacle()
}

const obstacleOf = ({ nodes, programs }: HostOptions): string => {
  if (programs.tunnel === undefined) return TUNNEL_MISSING
  return nodes === undefined ? 'servers do not reach the host of control planes' : ''
}

/** Uses that port if it is free. */
async function newRecord(desired: ControlPlaneDesired, host: string, wantedPort: number): Promise<ControlPlaneRecord> {
  const port = () => probePort(LOOPBACK, 0)
  const replicas = []
  for (let replica = 0; replica < desired.replicas; replica++)
    replicas.push({ etcdClient: await port(), etcdPeer: await port(), api: await port() })
  return {
    desired,
    endpointPort: await probePort(host, wantedPort).catch(() => probePort(host, 0)),
    replicas,
    release: null,
    tunnel: null,
    nodePorts: null,
    user: null,
    addons: {},
    generation: 0,
    restore: null,
    restoreId: null,
    isRemoved: false,
  }
}
