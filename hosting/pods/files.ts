/** The files of a control plane, created in its folder. Each part gets the files that it needs as a Secret. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { serviceAddress } from '../../integrations/control-planes/control.ts'
import { DISCOVERY_PATH, discoveryDocument, writeConfiguration } from '../core/configuration-files.ts'
import {
  type Credentials,
  LOOPBACK,
  openCredentials,
  openReaderCredentials,
  openServerCertificate,
  READER_NAME,
  type ReaderCredentials,
} from '../core/credentials.ts'
import { AUTOSCALER } from '../core/load.ts'
import type { Certificate } from '../../kit/sys/certificate.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'
import { secretManifest } from './base.ts'
import type { Manifest } from './kinds.ts'
import {
  API,
  ETCD,
  etcdHosts,
  INNER_URL,
  MANAGER,
  namespaceOf,
  PORTS,
  READER,
  SCHEDULER,
  TUNNEL_SOCKET,
} from './names.ts'
import type { PodsRecord } from './record.ts'

export interface Files {
  readonly credentials: Credentials
  readonly reader: ReaderCredentials
  readonly secrets: readonly Manifest[]
  /** Digest input of files for programs that nodes and people reach, which read them only once: a change restarts the
   *  programs. */
  readonly served: string
  readonly read: string
  readonly manager: string
  readonly scheduler: string
}

export interface FilesOptions {
  readonly folder: string
  readonly record: PodsRecord
  /** Addresses of the API from outside. */
  readonly addresses: readonly string[]
  readonly clock: Clock
  readonly random: Random
}

const pair = (name: string): readonly string[] => [`${name}.crt`, `${name}.key`]
const PARTS: Readonly<Record<string, readonly string[]>> = {
  [ETCD]: ['etcd-ca.crt', 'reader-ca.crt', ...pair('etcd'), ...pair('etcd-peer')],
  [API]: [
    'ca.crt',
    'etcd-ca.crt',
    'front-ca.crt',
    ...['apiserver', 'etcd-client', 'service-account', 'front-proxy', 'kubelet-client'].flatMap(pair),
    'authentication.json',
    'encryption.json',
    'audit-policy.json',
    'egress.json',
  ],
  [MANAGER]: ['controllerManager.kubeconfig', 'service-account.key', ...pair('ca')],
  [SCHEDULER]: ['scheduler.kubeconfig'],
  [READER]: [
    'ca.crt',
    'etcd-ca.crt',
    'reader-ca.crt',
    ...['admin', 'etcd-client', AUTOSCALER, READER_NAME].flatMap(pair),
  ],
}

/** A certificate that expires soon or lacks a name is replaced. */
export async function openFiles(options: FilesOptions): Promise<Files> {
  const { folder, record, addresses, clock, random } = options
  const { desired } = record
  const hosts = [
    API,
    `${API}.${namespaceOf(desired.id)}.svc`,
    ...addresses,
    ...desired.serverNames,
    ...desired.serviceCidrs.flatMap((cidr) => serviceAddress(cidr, 1) ?? []),
  ]
  const credentials = await openCredentials({ folder, hosts, etcdHosts: etcdHosts(record), clock, random })
  const reader = await openReaderCredentials(options)
  const issuer = await openServerCertificate(options, 'issuer', [LOOPBACK])
  const issuerUrl = `https://${LOOPBACK}:${PORTS.issuer}`
  await writeConfiguration({
    folder,
    desired,
    credentials,
    endpoint: INNER_URL,
    tunnelSocket: TUNNEL_SOCKET,
    random,
    discovery: { discoveryURL: `${issuerUrl}/${DISCOVERY_PATH}`, certificateAuthority: credentials.authority },
  })
  const fileOf = async (name: string) => [name, await readFile(join(folder, name), 'utf8')] as const
  const secrets = Object.entries(PARTS).map(async ([part, names]) => {
    const found = Object.fromEntries(await Promise.all(names.map(fileOf)))
    return secretManifest(record, part, { ...found, ...(part === API ? issuerFiles(record, issuer, issuerUrl) : {}) })
  })
  const [, manager] = await fileOf('controllerManager.kubeconfig')
  const [, scheduler] = await fileOf('scheduler.kubeconfig')
  const served = `${credentials.apiserver.certificate}${issuer.certificate}`
  const { admin, etcdClient, autoscaler } = credentials
  const read = [admin, etcdClient, autoscaler, reader.server].map(({ certificate }) => certificate).join('')
  return { credentials, reader, secrets: await Promise.all(secrets), served, read, manager, scheduler }
}

/** None when tokens of people are not accepted. */
function issuerFiles(
  { desired: { issuer } }: PodsRecord,
  { certificate, key }: Certificate,
  url: string,
): Readonly<Record<string, string>> {
  if (issuer === null) return {}
  return {
    'issuer.crt': certificate,
    'issuer.key': key,
    'issuer.json': JSON.stringify(discoveryDocument(issuer.url, `${url}/jwks`)),
    'issuer-keys.json': JSON.stringify({ keys: issuer.keys }),
  }
}
