/** The protocol between the platform and hosts of control planes of Kubernetes: the types of both sides. The platform
 *  chooses the ids of everything, and every call may be repeated. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { AGENT_OBJECTS_MAXIMUM, AgentObject } from '../organisation-platform/platform.ts'
import type { ClusterLoad } from './load.ts'

export type { AgentObject } from '../organisation-platform/platform.ts'

/** A patch release of Kubernetes, without `v`. */
const Release = z.string().regex(/^1\.\d{1,3}\.\d{1,3}$/)
const Id = z.uuid()
/** Id of a bootstrap token of Kubernetes. */
export const BootstrapTokenId = z.string().regex(/^[a-z0-9]{6}$/)

/** Address of a cluster's API for its pods: every node has this address itself (RFC 7600), with a connection to the
 *  control plane behind it. */
export const NODE_API = { address: '192.0.0.8', port: 6_443 } as const

/** The address with that number in an IPv4 range of services; undefined for another range. */
export function serviceAddress(cidr: string, number: number): string | undefined {
  const [first = '', length = ''] = cidr.split('/')
  const parts = first.split('.').map(Number)
  if (parts.length !== 4 || Number(length) > 24) return undefined
  return [...parts.slice(0, 3), (parts[3] ?? 0) + number].join('.')
}
/** Number of a cluster's name server, for `serviceAddress`. */
export const DNS_SERVICE_NUMBER = 10

/** The single node of a playground: a guest of the same host that only its control plane can reach. Everything of it
 *  ends at `endsAt`, even if the platform or the host is unavailable then. */
export const ControlPlaneGuest = z.strictObject({
  /** Name of the node; host names of its Ingresses start with it. */
  name: z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/),
  endsAt: z.iso.datetime(),
  vcpus: z.int().min(1),
  /** Resources for workloads; the guest itself is larger. */
  memoryMebibytes: z.int().min(1),
  storageGibibytes: z.int().min(0),
  pods: z.int().min(1),
  volumes: z.int().min(0),
})
export type ControlPlaneGuest = z.infer<typeof ControlPlaneGuest>

/** The desired state of a control plane. */
export const ControlPlaneDesired = z.strictObject({
  id: Id,
  release: Release,
  /** Number of API servers, and of members of etcd. */
  replicas: z.union([z.literal(1), z.literal(3)]),
  /** Names in the certificate of the API, besides its own addresses. */
  serverNames: z.array(z.string()),
  podCidrs: z.array(z.string()),
  serviceCidrs: z.array(z.string()),
  /** The issuer whose tokens identify people to the API, and its public signing keys (JWK); null for none. */
  issuer: z
    .strictObject({
      url: z.url(),
      audience: z.string(),
      keys: z.array(z.record(z.string(), z.string())).min(1).max(8),
    })
    .nullable(),
  /** Absent if nodes are servers. */
  guest: ControlPlaneGuest.optional(),
})
export type ControlPlaneDesired = z.infer<typeof ControlPlaneDesired>

export const ControlPlanePhase = z.enum(['starting', 'running', 'upgrading', 'restoring', 'stopping', 'failed'])

/** The observed state. */
export const ControlPlaneState = z.object({
  id: Id,
  phase: ControlPlanePhase,
  /** The release that every API server has reached; null before the first start. */
  release: Release.nullable(),
  /** URL for clients of the API, `https://host:port`; null until there is one. */
  endpoint: z.url().nullable(),
  /** PEM of the cluster's own authority; null until there is one. */
  certificateAuthority: z.string().nullable(),
  apiServer: z.enum(['healthy', 'unhealthy', 'unknown']),
  apiServersReady: z.int().min(0),
  etcdMembersReady: z.int().min(0),
  etcdMembersTotal: z.int().min(0),
  hasEtcdQuorum: z.boolean(),
  /** URL of its API for nodes, `https://host:port`, and the tunnel through which it reaches them; null if servers
   *  cannot reach the host. */
  forNodes: z.object({ endpoint: z.url(), tunnel: z.object({ host: z.string(), port: z.int() }) }).nullable(),
  /** Components that were installed in it for its nodes, and programs that run beside it. */
  addons: z.array(z.object({ name: z.string(), version: z.string() })),
  /** Programs that can run beside it, each with the id of its token; null while it has none. */
  grants: z.array(z.object({ addon: z.string(), tokenId: Id.nullable() })),
  /** Id of the last restore that ended. */
  restoreId: Id.nullable(),
  /** `mark`: `markOf` the place where its snapshots are also stored, empty for none. `detail`: why some are not there
   *  yet, for people, empty when all are. */
  snapshotStore: z.object({ mark: z.string(), detail: z.string() }),
  /** Empty when nothing is wrong. */
  detail: z.string(),
  observedAt: z.iso.datetime(),
})
export type ControlPlaneState = z.infer<typeof ControlPlaneState>

export const ControlPlaneSnapshot = z.object({
  id: Id,
  phase: z.enum(['running', 'done', 'failed']),
  release: Release,
  /** 0 until it is complete. */
  sizeBytes: z.int().min(0),
  createdAt: z.iso.datetime(),
  detail: z.string(),
  /** The object storage also has it completely. */
  isStored: z.boolean().default(false),
})
export type ControlPlaneSnapshot = z.infer<typeof ControlPlaneSnapshot>

/** A bucket in which the snapshots of one control plane are also stored, and their encryption key, which is not in the
 *  bucket. */
export const SnapshotPlace = z.strictObject({
  /** `https://host[:port]/bucket`. */
  url: z.url({ protocol: /^https?$/ }),
  /** PEM of its certificate's authority; null for a publicly trusted one. */
  authority: z.string().max(8_192).nullable(),
  accessKeyId: z.string().min(1).max(64),
  secretAccessKey: z.string().min(1).max(128),
  sealingKey: z.string().regex(/^[0-9a-f]{64}$/),
})
export type SnapshotPlace = z.infer<typeof SnapshotPlace>

/** Identifies a place without revealing it. */
export const markOf = ({ url, authority, accessKeyId, secretAccessKey, sealingKey }: SnapshotPlace): string =>
  createHash('sha256')
    .update(JSON.stringify([url, authority, accessKeyId, secretAccessKey, sealingKey]))
    .digest('hex')

/** The capabilities of a host of control planes. */
export const ControlPlaneOffer = z.object({
  driver: z.enum(['process', 'pods', 'simulated']),
  /** Newest last. */
  releases: z.array(Release),
  /** Memory for control planes in bytes, and the part of it that is in use. */
  memoryBytes: z.int().min(0),
  reservedBytes: z.int().min(0),
  /** Memory of one control plane in bytes, by its number of replicas. */
  bytesOfOne: z.int().min(0),
  bytesOfThree: z.int().min(0),
  /** Number of machines of the host. */
  nodeCount: z.int().min(0),
  /** Free bytes on the disks with data of etcd. */
  etcdBytes: z.int().min(0),
  /** Why nodes cannot join, for people; empty when they can. */
  nodesObstacle: z.string(),
  /** Control planes with a guest of this host: why they are unavailable, for people, empty when they are available; the
   *  memory of one with its guest; and the domain of their Ingresses. */
  guests: z.object({ obstacle: z.string(), bytesOfOne: z.int().min(0), appDomain: z.string() }),
})
export type ControlPlaneOffer = z.infer<typeof ControlPlaneOffer>

/** A node in its API server's view. */
export const ControlPlaneNode = z.object({
  name: z.string(),
  isReady: z.boolean(),
  kubeletVersion: z.string(),
  /** Its address in the network of the cluster; empty until it reports one. */
  address: z.string(),
  /** Its part of the range of pods; empty until it has one. */
  podCidr: z.string(),
  /** Digest of the last NodeMarks; empty before. */
  marked: z.string(),
})
export type ControlPlaneNode = z.infer<typeof ControlPlaneNode>

/** The desired labels and taints of a node. */
export const NodeMarks = z.strictObject({
  labels: z.record(z.string(), z.string()),
  taints: z.array(z.strictObject({ key: z.string(), value: z.string(), effect: z.string() })),
  /** Digest of the labels and taints; shown as `marked` once they are applied. */
  digest: z.string(),
})
export type NodeMarks = z.infer<typeof NodeMarks>

/** A kubelet's request for a serving certificate that nobody has approved or denied. */
export const ServingRequest = z.object({
  name: z.string(),
  username: z.string(),
  groups: z.array(z.string()),
  usages: z.array(z.string()),
  commonName: z.string(),
  organizations: z.array(z.string()),
  dnsNames: z.array(z.string()),
  ipAddresses: z.array(z.string()),
  /** The request contains something else. */
  hasMore: z.boolean(),
})
export type ServingRequest = z.infer<typeof ServingRequest>

/** An add-on's token for the platform, and data about its cluster. */
export const AddonGrant = z.strictObject({
  tokenId: Id,
  token: z.string(),
  clusterId: z.string(),
  /** Default zone of the objects that it creates. */
  zone: z.string(),
})
export type AddonGrant = z.infer<typeof AddonGrant>

/** Role of a token: `admin` has all rights in the cluster, `edit` those of the Kubernetes role of that name. */
export const ClusterRole = z.enum(['admin', 'edit'])
export type ClusterRole = z.infer<typeof ClusterRole>
/** A person with their own credentials in a cluster. */
export const Person = z.strictObject({ id: Id, role: ClusterRole })
export type Person = z.infer<typeof Person>
/** The objects of an agent of the organisation platform. */
export const AgentObjects = z.array(AgentObject).max(AGENT_OBJECTS_MAXIMUM)

/** A bearer token of an API server, valid until `expiresAt`. */
export const ControlPlaneToken = z.object({ token: z.string(), expiresAt: z.iso.datetime() })
export type ControlPlaneToken = z.infer<typeof ControlPlaneToken>

/** The driver of hosted control planes. Each method throws Unavailable when its host does not answer, and a Problem for
 *  a refusal. No method waits for long work: the state shows its progress. */
export interface ControlPlanes {
  offer(): Promise<ControlPlaneOffer>
  /** Applies the desired state, permanently and across restarts. A newer release replaces the API servers one after
   *  another, then the rest. Refuses an older minor version, and a control plane for which there is not enough memory.
   */
  ensure(desired: ControlPlaneDesired): Promise<ControlPlaneState>
  /** Undefined for an unknown control plane. */
  get(id: string): Promise<ControlPlaneState | undefined>
  /** Returns true once nothing of it is left, including snapshots. Does nothing for an unknown control plane. */
  remove(id: string): Promise<boolean>
  /** Starts a snapshot, unless one of that id has started. */
  snapshot(id: string, snapshotId: string): Promise<ControlPlaneSnapshot>
  snapshots(id: string): Promise<readonly ControlPlaneSnapshot[]>
  /** Stores existing and future snapshots in this place too, as soon as it answers. They also stay on the host. */
  keepSnapshotsIn(id: string, place: SnapshotPlace): Promise<void>
  removeSnapshot(id: string, snapshotId: string): Promise<void>
  /** Starts the restore, unless one of that id has started or ended. */
  restore(id: string, restoreId: string, snapshotId: string): Promise<ControlPlaneState>
  /** Runs the add-on with this token. A running one accepts a new token without a restart. */
  grant(id: string, addon: string, grant: AddonGrant): Promise<void>
  /** Creates a control plane again that its host has lost, with its keys and the data of that snapshot in the place,
   *  and at the port that its clients know if it is free. If it is not lost, this is a restore. */
  recover(
    desired: ControlPlaneDesired,
    place: SnapshotPlace,
    restoreId: string,
    snapshotId: string,
    endpointPort: number | null,
  ): Promise<ControlPlaneState>
  nodes(id: string): Promise<readonly ControlPlaneNode[]>
  /** A token for the platform itself, of a service account with that role. */
  userToken(id: string, role: ClusterRole, seconds: number): Promise<ControlPlaneToken>
  /** A token of the service account with that id and role, which is created for one person or token. */
  personToken(id: string, person: Person, seconds: number): Promise<ControlPlaneToken>
  /** Deletes the service account, which invalidates all its tokens. Does nothing when it does not exist. */
  removePerson(id: string, person: Person): Promise<void>
  /** A token with which only the nodes of one pool can join. */
  joinToken(id: string, tokenId: string, pool: string, seconds: number): Promise<ControlPlaneToken>
  /** Deletes the token, and the rights that the pool's nodes have before they have joined. */
  removeJoinToken(id: string, tokenId: string, pool: string): Promise<void>
  /** Requests of kubelets that wait for a decision. */
  servingRequests(id: string): Promise<readonly ServingRequest[]>
  /** Does nothing when the request is decided or deleted. */
  approveServing(id: string, request: string): Promise<void>
  /** Gives the node these labels and taints, and removes earlier ones of the platform; others stay. Does nothing when
   *  the node does not exist. */
  markNode(id: string, node: string, marks: NodeMarks): Promise<void>
  /** Evicts the pods of a node, within their disruption budgets; true when none is left that must be evicted. */
  drain(id: string, node: string): Promise<boolean>
  /** Lets the node take pods again. Does nothing when it does not exist. */
  uncordon(id: string, node: string): Promise<void>
  /** Requests and resources of its nodes and pods. */
  load(id: string): Promise<ClusterLoad>
  removeNode(id: string, node: string): Promise<void>
  /** Makes the agent of the organisation platform consist of exactly these objects. Refuses objects that an agent does
   *  not need. */
  setAgent(id: string, objects: readonly AgentObject[]): Promise<void>
}
