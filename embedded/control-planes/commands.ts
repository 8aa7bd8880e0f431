/** How the programs of one control plane are called. */
import { join } from 'node:path'
import { LOOPBACK } from './credentials.ts'
import type { ControlPlanePrograms, KubernetesPrograms } from './programs.ts'
import type { ControlPlaneRecord, ReplicaPorts } from './record.ts'

const AUDIT_FILE_MEBIBYTES = 8
const AUDIT_FILES = 3
const AUDIT_DAYS = 14
const ETCD_QUOTA_BYTES = 2 * 1024 ** 3

/** Trades a little processor time for memory, of which a host of many has less. */
export const GO_ENVIRONMENT = { GOGC: '50' }

export const dataFolder = (folder: string, generation: number, member: number): string =>
  join(folder, `etcd-${generation}-${member}`)

const peerUrl = ({ etcdPeer }: ReplicaPorts): string => `https://${LOOPBACK}:${etcdPeer}`
const clientUrl = ({ etcdClient }: ReplicaPorts): string => `https://${LOOPBACK}:${etcdClient}`
const memberName = (member: number): string => `m${member}`

/** Who the members of this generation are. */
const membership = ({ desired, replicas, generation }: ControlPlaneRecord): readonly string[] => [
  `--initial-cluster=${replicas.map((ports, member) => `${memberName(member)}=${peerUrl(ports)}`).join(',')}`,
  `--initial-cluster-token=${desired.id}-${generation}`,
]

/** Both doors ask for a certificate of etcd's own authority: whatever else reaches the loopback address gets in by
 *  neither. */
export function etcdCommand(
  { etcd }: ControlPlanePrograms,
  folder: string,
  record: ControlPlaneRecord,
  member: number,
): readonly string[] {
  const ports = replicaOf(record, member)
  const file = (name: string) => join(folder, name)
  return [
    etcd,
    `--name=${memberName(member)}`,
    `--data-dir=${dataFolder(folder, record.generation, member)}`,
    `--listen-client-urls=${clientUrl(ports)}`,
    `--advertise-client-urls=${clientUrl(ports)}`,
    `--listen-peer-urls=${peerUrl(ports)}`,
    `--initial-advertise-peer-urls=${peerUrl(ports)}`,
    ...membership(record),
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

/** What API servers write requests for nodes, and whatever runs there, into. */
export const tunnelSocket = (folder: string): string => join(folder, 'tunnel.sock')

/** Agents of nodes come in with the certificates of their kubelets, and each says which address it is for. */
export function tunnelCommand(
  tunnel: string,
  folder: string,
  { agents, admin, health }: NonNullable<ControlPlaneRecord['tunnel']>,
): readonly string[] {
  const file = (name: string) => join(folder, name)
  return [
    tunnel,
    '--mode=http-connect',
    '--server-port=0',
    `--uds-name=${tunnelSocket(folder)}`,
    '--proxy-strategies=destHost,default',
    `--cluster-ca-cert=${file('ca.crt')}`,
    `--cluster-cert=${file('apiserver.crt')}`,
    `--cluster-key=${file('apiserver.key')}`,
    `--agent-bind-address=${LOOPBACK}`,
    `--agent-port=${agents}`,
    `--admin-bind-address=${LOOPBACK}`,
    `--admin-port=${admin}`,
    `--health-bind-address=${LOOPBACK}`,
    `--health-port=${health}`,
  ]
}

/** Makes the member's folder of the record's generation from a snapshot. Watchers hold newer revisions than the
 *  snapshot has: they are told that theirs are gone. */
export function restoreCommand(
  { etcdutl }: ControlPlanePrograms,
  folder: string,
  { record, member, snapshot }: { record: ControlPlaneRecord; member: number; snapshot: string },
): readonly string[] {
  return [
    etcdutl,
    'snapshot',
    'restore',
    snapshot,
    `--name=${memberName(member)}`,
    `--data-dir=${dataFolder(folder, record.generation, member)}`,
    `--initial-advertise-peer-urls=${peerUrl(replicaOf(record, member))}`,
    ...membership(record),
    '--bump-revision=1000000000',
    '--mark-compacted',
  ]
}

export function apiserverCommand(
  { apiserver }: KubernetesPrograms,
  folder: string,
  record: ControlPlaneRecord,
  replica: number,
): readonly string[] {
  const file = (name: string) => join(folder, name)
  return [
    apiserver,
    `--etcd-servers=${record.replicas.map(clientUrl).join(',')}`,
    `--etcd-cafile=${file('etcd-ca.crt')}`,
    `--etcd-certfile=${file('etcd-client.crt')}`,
    `--etcd-keyfile=${file('etcd-client.key')}`,
    `--bind-address=${LOOPBACK}`,
    `--secure-port=${replicaOf(record, replica).api}`,
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
    `--service-cluster-ip-range=${record.desired.serviceCidrs.join(',')}`,
    `--encryption-provider-config=${file('encryption.json')}`,
    `--audit-policy-file=${file('audit-policy.json')}`,
    `--audit-log-path=${file(`audit-${replica}.log`)}`,
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
    ...(record.tunnel === null ? [] : [`--egress-selector-config-file=${file('egress.json')}`]),
    // All share the address of this machine: pods are told of the door that their node has.
    '--endpoint-reconciler-type=none',
    '--allow-privileged=true',
    '--profiling=false',
  ]
}

/** One of each runs at a time, and it is supervised: no election. */
export function controllerManagerCommand(
  { controllerManager }: KubernetesPrograms,
  folder: string,
  { desired }: ControlPlaneRecord,
): readonly string[] {
  const file = (name: string) => join(folder, name)
  return [
    controllerManager,
    `--kubeconfig=${file('controllerManager.kubeconfig')}`,
    `--service-account-private-key-file=${file('service-account.key')}`,
    `--root-ca-file=${file('ca.crt')}`,
    `--cluster-signing-cert-file=${file('ca.crt')}`,
    `--cluster-signing-key-file=${file('ca.key')}`,
    '--use-service-account-credentials=true',
    '--controllers=*,bootstrap-signer-controller,token-cleaner-controller',
    ...(desired.podCidrs.length === 0
      ? []
      : ['--allocate-node-cidrs=true', `--cluster-cidr=${desired.podCidrs.join(',')}`]),
    `--service-cluster-ip-range=${desired.serviceCidrs.join(',')}`,
    ...WITHOUT_DOOR,
  ]
}

export const schedulerCommand = ({ scheduler }: KubernetesPrograms, folder: string): readonly string[] => [
  scheduler,
  `--kubeconfig=${join(folder, 'scheduler.kubeconfig')}`,
  ...WITHOUT_DOOR,
]

const WITHOUT_DOOR = ['--leader-elect=false', '--secure-port=0', '--profiling=false']

function replicaOf({ replicas }: ControlPlaneRecord, index: number): ReplicaPorts {
  const ports = replicas[index]
  if (ports === undefined) throw new Error(`there is no replica ${index}`)
  return ports
}
