/** What the parts of a control plane in pods are called, and where they listen: pure. */
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import type { EtcdMembership, EtcdPlace } from '../core/flags.ts'
import type { PodsRecord } from './record.ts'

export const PREFIX = 'svccloud-cp-'
export const namespaceOf = (id: string): string => `${PREFIX}${id}`

export const MANAGED_BY = 'app.kubernetes.io/managed-by'
/** Of the namespace, and of all in it. */
export const PLANE_LABEL = 'svccloud.dev/control-plane'
/** Which part a pod is. */
export const PART_LABEL = 'svccloud.dev/part'
/** Of pods with data of etcd, those that only put it there included. */
export const STORES_LABEL = 'svccloud.dev/stores'

export const [ETCD, API, MANAGER, SCHEDULER, RESTORE, READER] = [
  ...(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'restore', 'reader'] as const),
]
/** Add-ons are called as the platform calls them. */
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

/** Where containers find their files. */
export const FOLDERS = { files: '/etc/svccloud', data: '/data', tunnel: '/tunnel', csi: '/csi' } as const
export const CSI_SOCKET = `${FOLDERS.csi}/csi.sock`
export const TUNNEL_SOCKET = `${FOLDERS.tunnel}/tunnel.sock`
export const SNAPSHOT_FILE = `${FOLDERS.data}/snapshot.db`
/** What the receiver of snapshots presents itself as, and members of etcd to whoever comes by an address. */
export const ETCD_NAME = 'etcd'
/** As whom an API server is known that is reached by an address. */
export const API_NAME = 'kubernetes'

/** Of the API, in its namespace. */
export const INNER_URL = `https://${API}:${PORTS.api}`

export const dataFolder = (generation: number): string => `${FOLDERS.data}/etcd-${generation}`
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

/** Of the member of that name, which may be a variable of its pod. */
export function etcdPlace({ desired, generation }: PodsRecord, name: string): EtcdPlace {
  const host = hostOf(name, namespaceOf(desired.id))
  return {
    name,
    folder: FOLDERS.files,
    dataFolder: dataFolder(generation),
    listen: { client: clientUrl('0.0.0.0'), peer: peerUrl('0.0.0.0') },
    advertise: { client: clientUrl(host), peer: peerUrl(host) },
  }
}
