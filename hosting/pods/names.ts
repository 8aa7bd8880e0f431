/** Names and ports of the parts of a control plane in pods. Pure. */
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import type { EtcdMembership, EtcdPlace } from '../core/flags.ts'
import type { PodsRecord } from './record.ts'

export const PREFIX = 'svccloud-cp-'
export const namespaceOf = (id: string): string => `${PREFIX}${id}`

export const MANAGED_BY = 'app.kubernetes.io/managed-by'
/** Label of the namespace and of all objects in it. */
export const PLANE_LABEL = 'svccloud.dev/control-plane'
/** Label with the part of a pod. */
export const PART_LABEL = 'svccloud.dev/part'
/** Label of pods with data of etcd, including those that only restore it. */
export const STORES_LABEL = 'svccloud.dev/stores'

export const [ETCD, API, MANAGER, SCHEDULER, RESTORE, READER] = [
  ...(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'restore', 'reader'] as const),
]
/** Parts of add-ons have the platform's names of the add-ons. */
export const ADDON_PARTS: readonly AddonName[] = ['cloud-controller', 'csi-driver']

export const PORTS = {
  etcdClient: 2_379,
  etcdPeer: 2_380,
  etcdHealth: 2_381,
  api: 6_443,
  tunnel: 8_132,
  tunnelAdmin: 8_133,
  tunnelHealth: 8_134,
  issuer: 8_444,
  managerHealth: 10_257,
  schedulerHealth: 10_259,
  receiver: 8_443,
  reader: 8_445,
} as const

/** Paths of files in containers. */
export const FOLDERS = { files: '/etc/svccloud', data: '/data', tunnel: '/tunnel', csi: '/csi' } as const
export const CSI_SOCKET = `${FOLDERS.csi}/csi.sock`
export const TUNNEL_SOCKET = `${FOLDERS.tunnel}/tunnel.sock`
export const SNAPSHOT_FILE = `${FOLDERS.data}/snapshot.db`
/** Name in the certificates of the receiver of snapshots and of members of etcd, for clients that connect to an
 *  address. */
export const ETCD_NAME = 'etcd'
/** Name in the certificate of an API server, for clients that connect to an address. */
export const API_NAME = 'kubernetes'

/** URL of the API in its namespace. */
export const INNER_URL = `https://${API}:${PORTS.api}`

export const podsDataFolder = (generation: number): string => `${FOLDERS.data}/etcd-${generation}`
export const claimName = (member: number): string => `data-${memberName(member)}`
export const memberName = (member: number): string => `${ETCD}-${member}`
const hostOf = (name: string, namespace: string): string => `${name}.${ETCD}.${namespace}.svc`
const peerUrl = (host: string): string => `https://${host}:${PORTS.etcdPeer}`
const clientUrl = (host: string): string => `https://${host}:${PORTS.etcdClient}`

export const membersOf = ({ desired }: Pick<PodsRecord, 'desired'>): readonly string[] =>
  Array.from({ length: desired.replicas }, (_, member) => memberName(member))

export const etcdHosts = (record: PodsRecord): readonly string[] => {
  const namespace = namespaceOf(record.desired.id)
  return [ETCD_NAME, ...membersOf(record).map((name) => hostOf(name, namespace))]
}

export const etcdServers = (record: PodsRecord): readonly string[] =>
  membersOf(record).map((name) => clientUrl(hostOf(name, namespaceOf(record.desired.id))))

export const membershipOf = (record: PodsRecord): EtcdMembership => ({
  token: `${record.desired.id}-${record.generation}`,
  members: membersOf(record).map((name) => ({ name, peer: peerUrl(hostOf(name, namespaceOf(record.desired.id))) })),
})

/** Location of the member of that name, which may be a variable of its pod. */
export function etcdPlace({ desired, generation }: PodsRecord, name: string): EtcdPlace {
  const host = hostOf(name, namespaceOf(desired.id))
  return {
    name,
    folder: FOLDERS.files,
    dataFolder: podsDataFolder(generation),
    listen: { client: clientUrl('0.0.0.0'), peer: peerUrl('0.0.0.0') },
    advertise: { client: clientUrl(host), peer: peerUrl(host) },
  }
}
