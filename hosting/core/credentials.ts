/** Keys and certificates of one control plane, created once in its folder. A certificate that expires soon or lacks a
 *  name is replaced at the next check. Four authorities that do not trust each other: the cluster's, etcd's, that of
 *  the front proxy, and the key of service accounts. */
import { X509Certificate } from 'node:crypto'
import { defined } from '../../domain/defined.ts'
import { isGood, readPair, writePair } from '../../kit/sys/certificate-pair.ts'
import { AUTOSCALER, AUTOSCALER_USER } from './load.ts'
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
  /** Addresses of the API, besides the names that every cluster has. */
  readonly hosts: readonly string[]
  /** Addresses of members of etcd, besides the loopback address. */
  readonly etcdHosts?: readonly string[]
  readonly clock: Clock
  readonly random: Random
}

export interface Credentials {
  /** PEM of the cluster's authority. */
  readonly authority: string
  /** Certificate of the API server. */
  readonly apiserver: Certificate
  readonly etcdAuthority: string
  /** Client certificates of this host: for the API server as an administrator, and for etcd. */
  readonly admin: Certificate
  readonly etcdClient: Certificate
  readonly controllerManager: Certificate
  readonly scheduler: Certificate
  readonly autoscaler: Certificate
}

interface Leaf {
  readonly commonName: string
  readonly organization?: string
  readonly hosts?: readonly string[]
  readonly isClient?: boolean
}

type LeafOptions = Pick<CredentialsOptions, 'folder' | 'clock' | 'random'>

async function openLeaf(
  { folder, clock, random }: LeafOptions,
  name: string,
  authority: Certificate,
  wanted: Leaf,
): Promise<Certificate> {
  const now = clock.now()
  const known = await readPair(folder, name)
  if (known !== undefined && isGood(known, { authority, hosts: wanted.hosts ?? [], now, days: RENEW_BEFORE_DAYS }))
    return known
  return writePair(folder, name, await makeCertificate({ ...wanted, days: LEAF_DAYS, authority, now, random }))
}

async function openAuthority({ folder, clock, random }: LeafOptions, name: string): Promise<Certificate> {
  const request = { commonName: `svccloud-${name}`, days: AUTHORITY_DAYS, isAuthority: true, now: clock.now(), random }
  return (await readPair(folder, name)) ?? writePair(folder, name, await makeCertificate(request))
}

/** Certificate of another client of the API. The credentials of the cluster must exist. */
export const openClientCertificate = async (
  options: LeafOptions,
  name: string,
  commonName: string,
): Promise<Certificate> => openLeaf(options, name, await authorityIn(options.folder), { commonName, isClient: true })

/** Certificate of a server beside the API servers. The credentials of the cluster must exist. */
export const openServerCertificate = async (
  options: LeafOptions,
  name: string,
  hosts: readonly string[],
): Promise<Certificate> => openLeaf(options, name, await authorityIn(options.folder), { commonName: name, hosts })

export interface ReaderCredentials {
  /** PEM. */
  readonly authority: string
  /** Certificate of the reader. */
  readonly server: Certificate
  /** Certificate of its clients. */
  readonly client: Certificate
}

/** Name of a reader in a pod, in its certificate. */
export const READER_NAME = 'reader'

/** Certificates of a separate authority that signs nothing else. Certificates of the cluster's authority are available
 *  to everybody who may approve certificate requests in the cluster, and certificates of etcd's authority give access
 *  to etcd. */
export async function openReaderCredentials(options: LeafOptions): Promise<ReaderCredentials> {
  const authority = await openAuthority(options, 'reader-ca')
  return {
    authority: authority.certificate,
    server: await openLeaf(options, READER_NAME, authority, { commonName: READER_NAME, hosts: [READER_NAME] }),
    client: await openLeaf(options, 'reader-client', authority, { commonName: 'svccloud:host', isClient: true }),
  }
}

async function authorityIn(folder: string): Promise<Certificate> {
  const authority = await readPair(folder, 'ca')
  if (authority === undefined) throw new Error('the cluster has no authority')
  return authority
}

/** Opens the files `NAME.crt` and `NAME.key` in the folder. */
export async function openCredentials(options: CredentialsOptions): Promise<Credentials> {
  const { hosts, etcdHosts = [] } = options
  const authority = (name: string) => openAuthority(options, name)
  const leaf = (name: string, signer: Certificate, wanted: Leaf) => openLeaf(options, name, signer, wanted)
  const [cluster, etcd, frontProxy] = [await authority('ca'), await authority('etcd-ca'), await authority('front-ca')]
  await authority('service-account') // its key signs tokens
  const client = (name: string, commonName: string, organization?: string) =>
    leaf(name, cluster, { commonName, isClient: true, ...defined({ organization }) })
  const onLoopback = { hosts: [LOOPBACK, 'localhost', ...etcdHosts], isClient: true }
  const apiserver = await leaf('apiserver', cluster, {
    commonName: 'kube-apiserver',
    hosts: [...new Set([...NAMES_IN_CLUSTER, LOOPBACK, ...hosts])],
  })
  await client('kubelet-client', 'kube-apiserver-kubelet-client', 'svccloud:kubelet-clients')
  await leaf('front-proxy', frontProxy, { commonName: 'front-proxy', isClient: true })
  await leaf('etcd', etcd, { commonName: 'etcd', ...onLoopback })
  await leaf('etcd-peer', etcd, { commonName: 'etcd-peer', ...onLoopback })
  return {
    authority: cluster.certificate,
    apiserver,
    etcdAuthority: etcd.certificate,
    etcdClient: await leaf('etcd-client', etcd, { commonName: 'kube-apiserver', isClient: true }),
    admin: await client('admin', 'svccloud:host', 'system:masters'),
    controllerManager: await client('controller-manager', 'system:kube-controller-manager'),
    scheduler: await client('scheduler', 'system:kube-scheduler'),
    autoscaler: await client(AUTOSCALER, AUTOSCALER_USER),
  }
}

/** Earliest end of the certificates that are renewed; the other certificates of the cluster were created at the same
 *  time. */
export function endOf({ apiserver, admin, etcdClient, controllerManager, scheduler, autoscaler }: Credentials): Date {
  const leaves = [apiserver, admin, etcdClient, controllerManager, scheduler, autoscaler]
  return new Date(Math.min(...leaves.map(({ certificate }) => Date.parse(new X509Certificate(certificate).validTo))))
}
