/** Keys and certificates of one control plane, made once in its folder; what expires soon, or lacks a name, is made
 *  anew at a start. Four authorities that trust nothing of each other: the cluster's, etcd's, that of the front proxy,
 *  and the key of service accounts. */
import { isGood, readPair, writePair } from '../certificate-pair.ts'
import { type Certificate, makeCertificate } from '../../kit/sys/certificate.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'

const AUTHORITY_DAYS = 3_650
const LEAF_DAYS = 365
const RENEW_BEFORE_DAYS = 60
export const LOOPBACK = '127.0.0.1'
const NAMES_IN_CLUSTER = [
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
  'localhost',
]

export interface CredentialsOptions {
  readonly folder: string
  /** What the API is reached by besides the names that every cluster has. */
  readonly hosts: readonly string[]
  readonly clock: Clock
  readonly random: Random
}

export interface Credentials {
  /** PEM of the cluster's authority. */
  readonly authority: string
  readonly etcdAuthority: string
  /** Of this host, to the API server as an administrator, and to etcd. */
  readonly admin: Certificate
  readonly etcdClient: Certificate
  readonly controllerManager: Certificate
  readonly scheduler: Certificate
}

interface Leaf {
  readonly commonName: string
  readonly organization?: string
  readonly hosts?: readonly string[]
  readonly isClient?: boolean
}

/** Files `NAME.crt` and `NAME.key` in the folder. */
export async function openCredentials(options: CredentialsOptions): Promise<Credentials> {
  const { folder, hosts, clock, random } = options
  const now = clock.now()
  const authority = async (name: string): Promise<Certificate> =>
    (await readPair(folder, name)) ??
    writePair(
      folder,
      name,
      await makeCertificate({ commonName: `svccloud-${name}`, days: AUTHORITY_DAYS, isAuthority: true, now, random }),
    )
  const leaf = async (name: string, signer: Certificate, wanted: Leaf): Promise<Certificate> => {
    const known = await readPair(folder, name)
    if (
      known !== undefined &&
      isGood(known, { authority: signer, hosts: wanted.hosts ?? [], now, days: RENEW_BEFORE_DAYS })
    )
      return known
    const made = await makeCertificate({ ...wanted, days: LEAF_DAYS, authority: signer, now, random })
    return writePair(folder, name, made)
  }
  const [cluster, etcd, frontProxy] = [await authority('ca'), await authority('etcd-ca'), await authority('front-ca')]
  await authority('service-account') // its key signs tokens
  const client = (name: string, commonName: string, organization?: string) =>
    leaf(name, cluster, { commonName, isClient: true, ...(organization === undefined ? {} : { organization }) })
  const onLoopback = { hosts: [LOOPBACK, 'localhost'], isClient: true }
  await leaf('apiserver', cluster, {
    commonName: 'kube-apiserver',
    hosts: [...new Set([...NAMES_IN_CLUSTER, LOOPBACK, ...hosts])],
  })
  await client('kubelet-client', 'kube-apiserver-kubelet-client', 'svccloud:kubelet-clients')
  await leaf('front-proxy', frontProxy, { commonName: 'front-proxy', isClient: true })
  await leaf('etcd', etcd, { commonName: 'etcd', ...onLoopback })
  await leaf('etcd-peer', etcd, { commonName: 'etcd-peer', ...onLoopback })
  return {
    authority: cluster.certificate,
    etcdAuthority: etcd.certificate,
    etcdClient: await leaf('etcd-client', etcd, { commonName: 'kube-apiserver', isClient: true }),
    admin: await client('admin', 'svccloud:host', 'system:masters'),
    controllerManager: await client('controller-manager', 'system:kube-controller-manager'),
    scheduler: await client('scheduler', 'system:kube-scheduler'),
  }
}
