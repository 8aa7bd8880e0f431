/** Command lines of the programs of one control plane. They run in its folder with relative paths, because their user
 *  has no access to the folders above it. */
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { LOOPBACK } from '../core/credentials.ts'
import {
  apiserverFlags,
  controllerManagerFlags,
  type EtcdMembership,
  type EtcdPlace,
  etcdFlags,
  restoreFlags,
  schedulerFlags,
  tunnelFlags,
} from '../core/flags.ts'
import type { ControlPlanePrograms, KubernetesPrograms } from './programs.ts'
import type { ControlPlaneRecord, ReplicaPorts } from './record.ts'
import { RUN_FOLDER } from './users.ts'

/** Environment of a program that reads its certificates only once: a change of certificates restarts it. API servers
 *  and etcd reload theirs. */
export const withCredentials = (environment: Readonly<Record<string, string>>, ...pems: readonly string[]) => ({
  ...environment,
  SVCCLOUD_CREDENTIALS: hash('sha256', pems.join('')),
})

const HERE = '.'
/** The same for etcd, which requires absolute paths. */
const HERE_AT_ROOT = '/proc/self/cwd'

export const dataFolder = (folder: string, generation: number, member: number): string =>
  join(folder, `etcd-${generation}-${member}`)

const peerUrl = ({ etcdPeer }: ReplicaPorts): string => `https://${LOOPBACK}:${etcdPeer}`
const clientUrl = ({ etcdClient }: ReplicaPorts): string => `https://${LOOPBACK}:${etcdClient}`
const memberName = (member: number): string => `m${member}`

/** The members of this generation. */
const membership = ({ desired, replicas, generation }: ControlPlaneRecord): EtcdMembership => ({
  token: `${desired.id}-${generation}`,
  members: replicas.map((ports, member) => ({ name: memberName(member), peer: peerUrl(ports) })),
})

function placeOf(record: ControlPlaneRecord, member: number): EtcdPlace {
  const ports = replicaOf(record, member)
  const urls = { client: clientUrl(ports), peer: peerUrl(ports) }
  const data = dataFolder(HERE_AT_ROOT, record.generation, member)
  return { name: memberName(member), folder: HERE, dataFolder: data, listen: urls, advertise: urls }
}

export const etcdCommand = (
  { etcd }: ControlPlanePrograms,
  record: ControlPlaneRecord,
  member: number,
): readonly string[] => [etcd, ...etcdFlags(placeOf(record, member), membership(record))]

/** Socket to which API servers send requests for nodes and pods. */
export const tunnelSocket = (folder: string): string => join(folder, RUN_FOLDER, 'tunnel.sock')
/** The socket's path for programs of the control plane. */
export const TUNNEL_SOCKET_HERE = tunnelSocket(HERE)

export function tunnelCommand(tunnel: string, ports: NonNullable<ControlPlaneRecord['tunnel']>): readonly string[] {
  const at = (port: number) => ({ address: LOOPBACK, port })
  const listeners = { agents: at(ports.agents), admin: at(ports.admin), health: at(ports.health) }
  return [tunnel, ...tunnelFlags({ folder: HERE, socket: TUNNEL_SOCKET_HERE, ...listeners })]
}

/** Creates the member's folder of the record's generation from a snapshot. */
export const restoreCommand = (
  { etcdutl }: ControlPlanePrograms,
  { record, member, snapshot }: { record: ControlPlaneRecord; member: number; snapshot: string },
): readonly string[] => [etcdutl, ...restoreFlags(placeOf(record, member), membership(record), snapshot)]

/** All share the address of this machine. */
export const apiserverCommand = (
  { apiserver }: KubernetesPrograms,
  record: ControlPlaneRecord,
  replica: number,
): readonly string[] => [
  apiserver,
  ...apiserverFlags(record.desired, {
    folder: HERE,
    bindAddress: LOOPBACK,
    port: replicaOf(record, replica).api,
    etcdServers: record.replicas.map(clientUrl),
    auditLog: join(RUN_FOLDER, `audit-${replica}.log`),
  }),
]

/** One of each runs at a time and is supervised, so there is no election. */
const ALONE = ['--leader-elect=false', '--secure-port=0']

export const controllerManagerCommand = (
  { controllerManager }: KubernetesPrograms,
  { desired }: ControlPlaneRecord,
): readonly string[] => [controllerManager, ...controllerManagerFlags(desired, HERE), ...ALONE]

export const schedulerCommand = ({ scheduler }: KubernetesPrograms): readonly string[] => [
  scheduler,
  ...schedulerFlags(HERE),
  ...ALONE,
]

function replicaOf({ replicas }: ControlPlaneRecord, index: number): ReplicaPorts {
  const ports = replicas[index]
  if (ports === undefined) throw new Error(`there is no replica ${index}`)
  return ports
}
