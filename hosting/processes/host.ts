/** All control planes of this machine. Accepts as many as its memory allows, and restarts those of the last run. */
import { statfs } from 'node:fs/promises'
import type { ControlPlaneDesired, ControlPlaneOffer } from '../../integrations/control-planes/control.ts'
import { LOOPBACK } from '../core/credentials.ts'
import type { HostedPlanes } from '../core/metrics.ts'
import { Planes } from '../core/planes.ts'
import { newPlaneRecord, writeRecord } from '../core/record.ts'
import { Refused } from '../core/refused.ts'
import { BUILD_KUBERNETES_COMMAND } from '../../domain/kubernetes-cluster/versions.ts'
import type { Clock } from '../../kit/sys/clock.ts'
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
import { openUsers, shareForUsers } from './users.ts'
import { type ControlPlaneRecord, portsOf, readRecord } from './record.ts'

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

/** Assigns an unused user, if this host has users. */
function withUser(
  record: ControlPlaneRecord,
  { users }: Pick<ControlPlaneOptions, 'users'>,
  others: readonly ControlPlane[],
): ControlPlaneRecord {
  if (users === undefined || record.user !== null) return record
  const used = new Set(others.map((plane) => plane.record.user))
  const user = Array.from({ length: users.count }, (_, index) => index).find((each) => !used.has(each))
  if (user === undefined) throw new Refused('no_capacity', 'The host of control planes has no users left.')
  return { ...record, user }
}

/** Assigns ports for nodes, if it has none yet and nodes can reach it. */
async function withWay(
  record: ControlPlaneRecord,
  { nodes, programs }: HostOptions,
  others: readonly ControlPlane[],
): Promise<ControlPlaneRecord> {
  const isGuest = record.desired.guest !== undefined
  if ((nodes === undefined && !isGuest) || programs.tunnel === undefined) return { ...record, tunnel: null }
  const port = () => probePort(LOOPBACK, 0)
  const tunnel = record.tunnel ?? { agents: await port(), admin: await port(), health: await port() }
  if (nodes?.listener === undefined || isGuest) return { ...record, tunnel, nodePorts: null }
  const { firstPort, ports } = nodes.listener
  const used = new Set(others.flatMap((plane) => plane.record.nodePorts?.endpoint ?? []))
  const free = Array.from({ length: ports / 2 }, (_, pair) => firstPort + 2 * pair).find((each) => !used.has(each))
  if (free === undefined) throw new Refused('no_capacity', 'The host of control planes has no ports left for nodes.')
  return { ...record, tunnel, nodePorts: record.nodePorts ?? { endpoint: free, tunnel: free + 1 } }
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
  const { folder, log, nodes, guests, addons = NO_ADDONS } = options
  await makeFolder(folder, 0o700)
  const issuerListener = await openIssuerListener({
    ...options,
    issuerOf: (id) => planes.find(id)?.record.desired.issuer,
  })
  const users = await openUsers(folder, options)
  const programs = users === undefined ? options.programs : await shareForUsers(options.programs)
  const parts = { ...options, programs, users, issuerListener }
  const reservedBytes = () => planes.all().reduce((sum, { record }) => sum + bytesFor(options, record.desired), 0)
  const complete = (record: ControlPlaneRecord) => withWay(withUser(record, parts, planes.all()), parts, planes.all())
  const planes: Planes<ControlPlaneRecord, ControlPlane> = new Planes({
    ...options,
    releases: releasesOf(options),
    guestsObstacle: () => guestsObstacle(options),
    async requireRoom(desired) {
      if (reservedBytes() + bytesFor(options, desired) > roomOf(options))
        throw new Refused('no_capacity', 'The host of control planes has no memory left for another one.')
    },
    async newRecord(desired, endpointPort) {
      const used = planes.all().map(({ record }) => record.endpointPort)
      const port = endpointPort === null || used.includes(endpointPort) ? 0 : endpointPort
      return complete(await newRecord(desired, options.host, port))
    },
    readRecord,
    open: (at, record) =>
      new ControlPlane({
        ...parts,
        addons,
        folder: at,
        record,
        nodeAddress: nodes?.address,
        guests: guests && { ...guests, size: GUEST_SIZE },
      }),
  })
  // Control planes with a user keep it: the others choose from the rest.
  for (const stored of (await planes.stored()).toSorted((one, other) => order(one.record) - order(other.record))) {
    await holdPorts(stored.record, log)
    const record = await complete(stored.record)
    await writeRecord(stored.folder, record)
    planes.start({ ...stored, record })
  }
  const nodeListener =
    nodes?.listener &&
    (await openNodeListener(nodes.listener.socket, (client, port) =>
      planes.all().some((plane) => plane.takeNode(client, port)),
    ))
  const appsListener =
    guests &&
    (await openAppsListener({
      ...options,
      port: guests.port,
      domain: guests.appDomain,
      playground: (name) => planes.all().flatMap((plane) => plane.playground(name) ?? [])[0],
    }))
  return {
    ...planes.calls(),
    offer: () => offerOf(options, reservedBytes()),
    pid: (id, program) => planes.find(id)?.pid(program),
    async stop() {
      nodeListener?.close()
      await appsListener?.stop()
      await planes.stop()
      guests?.templates.stop()
      await issuerListener.stop()
    },
  }
}

async function offerOf(options: HostOptions, reservedBytes: number): Promise<ControlPlaneOffer> {
  const { folder, guests } = options
  return {
    driver: 'process',
    releases: releasesOf(options),
    memoryBytes: roomOf(options),
    reservedBytes,
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
    ...newPlaneRecord(desired),
    endpointPort: await probePort(host, wantedPort).catch(() => probePort(host, 0)),
    replicas,
    tunnel: null,
    nodePorts: null,
    user: null,
  }
}
