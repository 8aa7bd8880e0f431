/** The server of a dev cluster, and its configuration. Pure. */
import { createPublicKey } from 'node:crypto'
import {
  DEV_API_PORT,
  DEV_CLUSTER_ROLE,
  DEV_NODE_ADDRESS,
  devClusterRanges,
  serviceAccountIssuerOf,
} from '../../../domain/dev-cluster/rules.ts'
import { newestRelease, TOKEN_ISSUER_URL } from '../../../domain/kubernetes-cluster/rules.ts'
import { DEV_CLUSTER_TEMPLATE } from '../../../domain/managed-machine/rules.ts'
import { DNS_SERVICE_NUMBER, serviceAddress } from '../../../integrations/control-planes/control.ts'
import { DEV_CLUSTER_RELEASES } from '../../../domain/kubernetes-cluster/versions.ts'
import { DevCluster } from '../../../resources/dev-cluster/index.ts'
import type { MachineDocumentParts } from '../../../resources/managed-machine/index.ts'
import { configurationFingerprint, type Machine, type MachineDemand, type Owner } from '../managed-machine/index.ts'
import type { DevClusterObject, Observed } from './observed.ts'

const ZONE_LABEL = 'topology.kubernetes.io/zone'
const REGION_LABEL = 'topology.kubernetes.io/region'
/** The label that marks its server. */
const SERVER_LABEL = 'svccloud.dev/dev-cluster'
/** The fingerprint alone identifies its configuration. */
const GENERATION = 1

export function devClusterOwner({ metadata, spec }: DevClusterObject, accountId: string): Owner {
  const { name: id, namespace = '', uid = '' } = metadata
  return { type: 'dev_cluster', id, uid, namespace, accountId, zone: spec.zone, resource: DevCluster }
}

export const devClusterMachine = (machines: readonly Machine[]): Machine | undefined =>
  machines.find(({ role }) => role === DEV_CLUSTER_ROLE)

/** The desired server. */
export function devClusterDemand(cluster: DevClusterObject, observed: Observed): MachineDemand {
  const { spec } = cluster
  const document = devClusterDocument(cluster, observed)
  return {
    role: DEV_CLUSTER_ROLE,
    hostname: spec.name,
    plan: spec.plan,
    template: DEV_CLUSTER_TEMPLATE,
    publicIpv4: spec.publicIpv4,
    networkIds: spec.networkId === undefined ? [] : [spec.networkId],
    sharedAddresses: [],
    labels: { ...spec.labels, [SERVER_LABEL]: spec.name },
    sshKeys: spec.sshKeys,
    configuration: document && { generation: GENERATION, fingerprint: configurationFingerprint(document) },
  }
}

/** Addresses of its server, IPv6 first. Empty until it has its own. */
const publicAddressesOf = ({ publicIpv6, publicIpv4 }: Machine): readonly string[] =>
  publicIpv6 === undefined ? [] : [publicIpv6, ...(publicIpv4 === undefined ? [] : [publicIpv4])]

/** The configuration document of its server, without secrets; undefined while it is incomplete. */
export function devClusterDocument(
  { metadata, spec, status }: DevClusterObject,
  { machines, networkCidr, issuerKey, region, endedAdmins }: Observed,
): MachineDocumentParts | undefined {
  const machine = devClusterMachine(machines)
  const release = newestRelease(spec.version, DEV_CLUSTER_RELEASES)
  if (machine === undefined || issuerKey === undefined || release === undefined) return undefined
  if (spec.networkId !== undefined && networkCidr === undefined) return undefined
  const addresses = publicAddressesOf(machine)
  const { pods, services, ipv6Pods, ipv6Services } = devClusterRanges(networkCidr)
  const dnsAddress = serviceAddress(services, DNS_SERVICE_NUMBER)
  if (addresses.length === 0 || dnsAddress === undefined) return undefined
  const { publicMacAddress = '', publicIpv6 = '' } = machine
  const { uid = '' } = metadata
  // Administrators that the cluster does not have need not be removed.
  const ended = status?.admins?.map((admin) => admin.uid).filter((admin) => endedAdmins.includes(admin)) ?? []
  return {
    // A server with its own prefix requests no address in it: the address is configured here.
    ...(publicMacAddress === '' ? {} : { addresses: [{ interface: publicMacAddress, address: `${publicIpv6}/128` }] }),
    devCluster: {
      release,
      nodeName: spec.name,
      nodeAddress: DEV_NODE_ADDRESS,
      apiPort: DEV_API_PORT,
      publicAddresses: [...addresses],
      podCidrs: [pods, ipv6Pods],
      serviceCidrs: [services, ipv6Services],
      dnsAddress,
      nodeLabels: { [ZONE_LABEL]: spec.zone, ...(region === '' ? {} : { [REGION_LABEL]: region }) },
      issuer: { url: TOKEN_ISSUER_URL, audience: uid, keys: [{ ...issuerKey }] },
      serviceAccountIssuer: serviceAccountIssuerOf(uid),
      adminKey: createPublicKey({ key: { ...issuerKey }, format: 'jwk' })
        .export({ type: 'spki', format: 'pem' })
        .toString(),
      authorizedKeys: [...spec.sshKeys],
      ...(ended.length === 0 ? {} : { endedAdmins: ended.toSorted() }),
    },
  }
}
