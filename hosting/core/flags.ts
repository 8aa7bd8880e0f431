/** Command lines of the programs of a control plane, for all kinds of hosts. They differ only in the paths of files and
 *  the addresses of listeners. */
import { join } from 'node:path'
import type { ControlPlaneDesired } from '../../integrations/control-planes/control.ts'

const AUDIT_FILE_MEBIBYTES = 8
const AUDIT_FILES = 3
const AUDIT_DAYS = 14
export const ETCD_QUOTA_BYTES = 2 * 1024 ** 3

/** Uses slightly more processor time and less memory, which is scarce on a host of many control planes. */
export const GO_ENVIRONMENT = { GOGC: '50' }

/** One member of etcd and the location of its data. */
export interface EtcdPlace {
  readonly name: string
  /** Folder of certificates and keys. */
  readonly folder: string
  readonly dataFolder: string
  readonly listen: { readonly client: string; readonly peer: string }
  readonly advertise: { readonly client: string; readonly peer: string }
}

/** Members of etcd in one generation. */
export interface EtcdMembership {
  readonly token: string
  readonly members: readonly { readonly name: string; readonly peer: string }[]
}

const membershipFlags = ({ token, members }: EtcdMembership): readonly string[] => [
  `--initial-cluster=${members.map(({ name, peer }) => `${name}=${peer}`).join(',')}`,
  `--initial-cluster-token=${token}`,
]

/** Both listeners require a certificate of etcd's own authority and refuse all other clients. */
export function etcdFlags(place: EtcdPlace, membership: EtcdMembership): readonly string[] {
  const { name, folder, dataFolder, listen, advertise } = place
  const file = (pem: string) => join(folder, pem)
  return [
    `--name=${name}`,
    `--data-dir=${dataFolder}`,
    `--listen-client-urls=${listen.client}`,
    `--advertise-client-urls=${advertise.client}`,
    `--listen-peer-urls=${listen.peer}`,
    `--initial-advertise-peer-urls=${advertise.peer}`,
    ...membershipFlags(membership),
    '--initial-cluster-state=new',
    `--cert-file=${file('etcd.crt')}`,
    `--key-file=${file('etcd.key')}`,
    `--trusted-ca-file=${file('etcd-ca.crt')}`,
    '--client-cert-auth',
    `--peer-cert-file=${file('etcd-peer.crt')}`,
    `--peer-key-file=${file('etcd-peer.key')}`,
    `--peer-trusted-ca-file=${file('etcd-ca.crt')}`,
    '--peer-client-cert-auth',
    `--quota-backend-bytes=${ETCD_QUOTA_BYTES}`,
    '--log-level=error',
  ]
}

/** Creates a member's folder from a snapshot. Revisions continue above those that watchers know, and older ones are
 *  marked as compacted, so that watchers restart. */
export const restoreFlags = (
  { name, dataFolder, advertise }: EtcdPlace,
  membership: EtcdMembership,
  snapshot: string,
): readonly string[] => [
  'snapshot',
  'restore',
  snapshot,
  `--name=${name}`,
  `--data-dir=${dataFolder}`,
  `--initial-advertise-peer-urls=${advertise.peer}`,
  ...membershipFlags(membership),
  '--bump-revision=1000000000',
  '--mark-compacted',
]

export interface TunnelPlace {
  readonly folder: string
  /** Socket to which API servers send requests for nodes and pods. */
  readonly socket: string
  readonly agents: { readonly address: string; readonly port: number }
  readonly admin: { readonly address: string; readonly port: number }
  readonly health: { readonly address: string; readonly port: number }
}

/** After this silence an agent is pinged; twenty seconds later its tunnel is closed. A deleted node stays silent.
 *  Without the check, its tunnel would take the traffic for its address, which the next node may have, for two hours.
 */
const SILENT_SECONDS = 10

/** Agents of nodes authenticate with the certificates of their kubelets, and each declares the address that it serves.
 */
export function tunnelFlags({ folder, socket, agents, admin, health }: TunnelPlace): readonly string[] {
  const file = (pem: string) => join(folder, pem)
  return [
    '--mode=http-connect',
    '--server-port=0',
    `--uds-name=${socket}`,
    '--proxy-strategies=destHost,default',
    `--keepalive-time=${SILENT_SECONDS}s`,
    `--cluster-ca-cert=${file('ca.crt')}`,
    `--cluster-cert=${file('apiserver.crt')}`,
    `--cluster-key=${file('apiserver.key')}`,
    `--agent-bind-address=${agents.address}`,
    `--agent-port=${agents.port}`,
    `--admin-bind-address=${admin.address}`,
    `--admin-port=${admin.port}`,
    `--health-bind-address=${health.address}`,
    `--health-port=${health.port}`,
  ]
}

export interface ApiServerPlace {
  readonly folder: string
  readonly etcdServers: readonly string[]
  readonly bindAddress: string
  readonly port: number
  readonly auditLog: string
}

export function apiserverFlags(
  { serviceCidrs }: Pick<ControlPlaneDesired, 'serviceCidrs'>,
  { folder, etcdServers, bindAddress, port, auditLog }: ApiServerPlace,
): readonly string[] {
  const file = (name: string) => join(folder, name)
  return [
    `--etcd-servers=${etcdServers.join(',')}`,
    `--etcd-cafile=${file('etcd-ca.crt')}`,
    `--etcd-certfile=${file('etcd-client.crt')}`,
    `--etcd-keyfile=${file('etcd-client.key')}`,
    `--bind-address=${bindAddress}`,
    `--secure-port=${port}`,
    `--tls-cert-file=${file('apiserver.crt')}`,
    `--tls-private-key-file=${file('apiserver.key')}`,
    `--client-ca-file=${file('ca.crt')}`,
    `--authentication-config=${file('authentication.json')}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--enable-bootstrap-token-auth=true',
    `--service-account-key-file=${file('service-account.crt')}`,
    `--service-account-signing-key-file=${file('service-account.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-cluster-ip-range=${serviceCidrs.join(',')}`,
    `--encryption-provider-config=${file('encryption.json')}`,
    `--audit-policy-file=${file('audit-policy.json')}`,
    `--audit-log-path=${auditLog}`,
    `--audit-log-maxsize=${AUDIT_FILE_MEBIBYTES}`,
    `--audit-log-maxbackup=${AUDIT_FILES}`,
    `--audit-log-maxage=${AUDIT_DAYS}`,
    `--requestheader-client-ca-file=${file('front-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${file('front-proxy.crt')}`,
    `--proxy-client-key-file=${file('front-proxy.key')}`,
    `--kubelet-client-certificate=${file('kubelet-client.crt')}`,
    `--kubelet-client-key=${file('kubelet-client.key')}`,
    `--kubelet-certificate-authority=${file('ca.crt')}`,
    '--kubelet-preferred-address-types=InternalIP',
    `--egress-selector-config-file=${file('egress.json')}`,
    // Their own addresses are unreachable for pods, which use the address on their node.
    '--endpoint-reconciler-type=none',
    '--allow-privileged=true',
    '--profiling=false',
  ]
}

export function controllerManagerFlags(
  { podCidrs, serviceCidrs }: Pick<ControlPlaneDesired, 'podCidrs' | 'serviceCidrs'>,
  folder: string,
): readonly string[] {
  const file = (name: string) => join(folder, name)
  return [
    `--kubeconfig=${file('controllerManager.kubeconfig')}`,
    `--service-account-private-key-file=${file('service-account.key')}`,
    `--root-ca-file=${file('ca.crt')}`,
    `--cluster-signing-cert-file=${file('ca.crt')}`,
    `--cluster-signing-key-file=${file('ca.key')}`,
    '--use-service-account-credentials=true',
    '--controllers=*,bootstrap-signer-controller,token-cleaner-controller',
    ...(podCidrs.length === 0 ? [] : ['--allocate-node-cidrs=true', `--cluster-cidr=${podCidrs.join(',')}`]),
    `--service-cluster-ip-range=${serviceCidrs.join(',')}`,
    '--profiling=false',
  ]
}

export const schedulerFlags = (folder: string): readonly string[] => [
  `--kubeconfig=${join(folder, 'scheduler.kubeconfig')}`,
  '--profiling=false',
]
