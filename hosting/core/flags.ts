/** How the programs of a control plane are called, whoever runs them: what differs is where files are and what they
 *  listen on. */
import { join } from 'node:path'
import type { ControlPlaneDesired } from '../../integrations/control-planes/control.ts'

const AUDIT_FILE_MEBIBYTES = 8
const AUDIT_FILES = 3
const AUDIT_DAYS = 14
export const ETCD_QUOTA_BYTES = 2 * 1024 ** 3

/** Trades a little processor time for memory, of which a host of many has less. */
export const GO_ENVIRONMENT = { GOGC: '50' }

/** One member of etcd and where it keeps its data. */
export interface EtcdPlace {
  readonly name: string
  /** Of certificates and keys. */
  readonly folder: string
  readonly dataFolder: string
  readonly listen: { readonly client: string; readonly peer: string }
  readonly advertise: { readonly client: string; readonly peer: string }
}

/** Who the members of one generation are. */
export interface EtcdMembership {
  readonly token: string
  readonly members: readonly { readonly name: string; readonly peer: string }[]
}

const membershipFlags = ({ token, members }: EtcdMembership): readonly string[] => [
  `--initial-cluster=${members.map(({ name, peer }) => `${name}=${peer}`).join(',')}`,
  `--initial-cluster-token=${token}`,
]

/** Both listeners ask for a certificate of etcd's own authority: whatever else reaches them gets in by neither. */
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

/** Makes the folder of a member from a snapshot. Watchers hold newer revisions than the snapshot has: they are told
 *  that theirs are gone. */
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
  /** What API servers write requests for nodes, and whatever runs there, into. */
  readonly socket: string
  readonly agents: { readonly address: string; readonly port: number }
  readonly admin: { readonly address: string; readonly port: number }
  readonly health: { readonly address: string; readonly port: number }
}

/** Without a word of an agent, after which it is asked; twenty seconds later its tunnel is closed. A node that is gone
 *  says nothing: what is for its address, which the next node may have, would go into its tunnel for two hours. */
const SILENT_SECONDS = 10

/** Agents of nodes come in with the certificates of their kubelets, and each says which address it is for. */
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
    // Nobody reaches them where they are: pods use the address that their node has.
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
