/** What the platform and whatever hosts control planes of Kubernetes say to each other: the shapes of both sides.
 *  Everything is named by ids that the platform chooses, and everything may be said twice. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { AGENT_OBJECTS_MAXIMUM, AgentObject } from '../organisation-platform/platform.ts'
import type { ClusterLoad } from './load.ts'

export type { AgentObject } from '../organisation-platform/platform.ts'

/** A patch release of Kubernetes, without `v`. */
const Release = z.string().regex(/^1\.\d{1,3}\.\d{1,3}$/)
const Id = z.uuid()
/** Of the bootstrap tokens of Kubernetes. */
export const BootstrapTokenId = z.string().regex(/^[a-z0-9]{6}$/)

/** Where the API of a cluster is for its pods: an address that every node has for itself (RFC 7600), with a way to the
 *  control plane behind it. */
export const NODE_API = { address: '192.0.0.8', port: 6_443 } as const

/** The address of that number in a range of services of IPv4; undefined for another range. */
export function serviceAddress(cidr: string, number: number): string | undefined {
  const [first = '', length = ''] = cidr.split('/')
  const parts = first.split('.').map(Number)
  if (parts.length !== 4 || Number(length) > 24) return undefined
  return [...parts.slice(0, 3), (parts[3] ?? 0) + number].join('.')
}
/** Of the name server of a cluster, by that function. */
export const DNS_SERVICE_NUMBER = 10

/** The one node of a playground: a guest of the same host that nothing reaches but its control plane. All of it ends by
 *  then, whoever is away. */
export const ControlPlaneGuest = z.strictObject({
  /** Of the node; what its Ingresses are served below begins with it. */
  name: z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/),
  endsAt: z.iso.datetime(),
  vcpus: z.int().min(1),
  /** What workloads may use; the guest itself is larger. */
  memoryMebibytes: z.int().min(1),
  storageGibibytes: z.int().min(0),
  pods: z.int().min(1),
  volumes: z.int().min(0),
})
export type ControlPlaneGuest = z.infer<typeof ControlPlaneGuest>

/** What a control plane is to be. */
export const ControlPlaneDesired = z.strictObject({
  id: Id,
  release: Release,
  /** API servers, and members of etcd. */
  replicas: z.union([z.literal(1), z.literal(3)]),
  /** What the certificate of the API is for besides its own addresses. */
  serverNames: z.array(z.string()),
  podCidrs: z.array(z.string()),
  serviceCidrs: z.array(z.string()),
  /** Whose tokens the API takes as people, and the public keys (JWK) that it signs them with; null for none. */
  issuer: z
    .strictObject({
      url: z.url(),
      audience: z.string(),
      keys: z.array(z.record(z.string(), z.string())).min(1).max(8),
    })
    .nullable(),
  /** Absent where nodes are servers. */
  guest: ControlPlaneGuest.optional(),
})
export type ControlPlaneDesired = z.infer<typeof ControlPlaneDesired>

export const ControlPlanePhase = z.enum(['starting', 'running', 'upgrading', 'restoring', 'stopping', 'failed'])

/** As it is. */
export const ControlPlaneState = z.object({
  id: Id,
  phase: ControlPlanePhase,
  /** Every API server is on this release; null before the first start. */
  release: Release.nullable(),
  /** Where clients of the API connect, `https://host:port`; null until there is one. */
  endpoint: z.url().nullable(),
  /** PEM of the cluster's own authority; null until there is one. */
  certificateAuthority: z.string().nullable(),
  apiServer: z.enum(['healthy', 'unhealthy', 'unknown']),
  apiServersReady: z.int().min(0),
  etcdMembersReady: z.int().min(0),
  etcdMembersTotal: z.int().min(0),
  hasEtcdQuorum: z.boolean(),
  /** Where nodes reach its API, `https://host:port`, and the tunnel by which it reaches them; null where servers reach
   *  nothing of the host. */
  forNodes: z.object({ endpoint: z.url(), tunnel: z.object({ host: z.string(), port: z.int() }) }).nullable(),
  /** What was installed in it for its nodes, and what runs beside it. */
  addons: z.array(z.object({ name: z.string(), version: z.string() })),
  /** Programs that can run beside it, each with the id of the token that it has; null while it has none. */
  grants: z.array(z.object({ addon: z.string(), tokenId: Id.nullable() })),
  /** The last restore that ended, by the id it was given. */
  restoreId: Id.nullable(),
  /** Where its snapshots go as well: `markOf` that place, empty for none; and why some have not got there, for people,
   *  empty when all have. */
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
  /** 0 until it is done. */
  sizeBytes: z.int().min(0),
  createdAt: z.iso.datetime(),
  detail: z.string(),
  /** It is whole in the object storage too. */
  isStored: z.boolean().default(false),
})
export type ControlPlaneSnapshot = z.infer<typeof ControlPlaneSnapshot>

/** A bucket that the snapshots of one control plane go to as well, and the key that seals them, which is not there. */
export const SnapshotPlace = z.strictObject({
  /** `https://host[:port]/bucket`. */
  url: z.url({ protocol: /^https?$/ }),
  /** PEM of who signed its certificate; null when that is one that everybody trusts. */
  authority: z.string().max(8_192).nullable(),
  accessKeyId: z.string().min(1).max(64),
  secretAccessKey: z.string().min(1).max(128),
  sealingKey: z.string().regex(/^[0-9a-f]{64}$/),
})
export type SnapshotPlace = z.infer<typeof SnapshotPlace>

/** Tells places apart without telling them. */
export const markOf = ({ url, authority, accessKeyId, secretAccessKey, sealingKey }: SnapshotPlace): string =>
  createHash('sha256')
    .update(JSON.stringify([url, authority, accessKeyId, secretAccessKey, sealingKey]))
    .digest('hex')

/** What the host of control planes has. */
export const ControlPlaneOffer = z.object({
  driver: z.enum(['process', 'pods', 'simulated']),
  /** Newest last. */
  releases: z.array(Release),
  /** Bytes that are reserved for control planes, and of those the ones that are given. */
  memoryBytes: z.int().min(0),
  reservedBytes: z.int().min(0),
  /** What one takes, by its number of replicas. */
  bytesOfOne: z.int().min(0),
  bytesOfThree: z.int().min(0),
  /** Machines that it runs on. */
  nodeCount: z.int().min(0),
  /** What is free on the disks that data of etcd lie on. */
  etcdBytes: z.int().min(0),
  /** Why nodes cannot join, for people; empty when they can. */
  nodesObstacle: z.string(),
  /** Control planes with a guest of this host: why it has none, for people, empty when it has; what one takes of its
   *  memory with its guest; and the domain that their Ingresses are served below. */
  guests: z.object({ obstacle: z.string(), bytesOfOne: z.int().min(0), appDomain: z.string() }),
})
export type ControlPlaneOffer = z.infer<typeof ControlPlaneOffer>

/** A node as its API server knows it. */
export const ControlPlaneNode = z.object({
  name: z.string(),
  isReady: z.boolean(),
  kubeletVersion: z.string(),
  /** Its address in the network of the cluster; empty until it says so. */
  address: z.string(),
  /** Its part of the range of pods; empty until it has one. */
  podCidr: z.string(),
  /** Digest of what it was told to be last; empty before. */
  marked: z.string(),
})
export type ControlPlaneNode = z.infer<typeof ControlPlaneNode>

/** What a node is to be. */
export const NodeMarks = z.strictObject({
  labels: z.record(z.string(), z.string()),
  taints: z.array(z.strictObject({ key: z.string(), value: z.string(), effect: z.string() })),
  /** Of all that, and shown as `marked` once it is so. */
  digest: z.string(),
})
export type NodeMarks = z.infer<typeof NodeMarks>

/** A request for a certificate that a kubelet serves with, which nobody has judged. */
export const ServingRequest = z.object({
  name: z.string(),
  username: z.string(),
  groups: z.array(z.string()),
  usages: z.array(z.string()),
  commonName: z.string(),
  organizations: z.array(z.string()),
  dnsNames: z.array(z.string()),
  ipAddresses: z.array(z.string()),
  /** It asks for something else besides. */
  hasMore: z.boolean(),
})
export type ServingRequest = z.infer<typeof ServingRequest>

/** What an add-on calls the platform with, and what it is told of its cluster. */
export const AddonGrant = z.strictObject({
  tokenId: Id,
  token: z.string(),
  clusterId: z.string(),
  /** Of what it makes, where nobody says another one. */
  zone: z.string(),
})
export type AddonGrant = z.infer<typeof AddonGrant>

/** Of whoever has a token: `admin` may do everything in the cluster, `edit` what the role of that name may. */
export const ClusterRole = z.enum(['admin', 'edit'])
export type ClusterRole = z.infer<typeof ClusterRole>
/** Somebody who has a credential of their own in a cluster. */
export const Person = z.strictObject({ id: Id, role: ClusterRole })
export type Person = z.infer<typeof Person>
/** What an agent of the organisation platform consists of. */
export const AgentObjects = z.array(AgentObject).max(AGENT_OBJECTS_MAXIMUM)

/** A bearer token of an API server, until then. */
export const ControlPlaneToken = z.object({ token: z.string(), expiresAt: z.iso.datetime() })
export type ControlPlaneToken = z.infer<typeof ControlPlaneToken>

/** The driver of hosted control planes. Each method throws Unavailable when its host does not answer, and a Problem
 *  for what it refuses. None waits for what takes long: the state says how far it is. */
export interface ControlPlanes {
  offer(): Promise<ControlPlaneOffer>
  /** Makes it so, from now on and after every restart: a newer release rolls one API server after another, then the
   *  rest. Refuses an older minor, and what its memory has no room for. */
  ensure(desired: ControlPlaneDesired): Promise<ControlPlaneState>
  /** Undefined for an unknown one. */
  get(id: string): Promise<ControlPlaneState | undefined>
  /** True once nothing of it is left, snapshots included; free for an unknown one. */
  remove(id: string): Promise<boolean>
  /** Begins one, unless one of that id has begun. */
  snapshot(id: string, snapshotId: string): Promise<ControlPlaneSnapshot>
  snapshots(id: string): Promise<readonly ControlPlaneSnapshot[]>
  /** From now on, and those that are there: each is brought there as soon as that answers, and stays here too. */
  keepSnapshotsIn(id: string, place: SnapshotPlace): Promise<void>
  removeSnapshot(id: string, snapshotId: string): Promise<void>
  /** Begins it, unless one of that id has begun or ended. */
  restore(id: string, restoreId: string, snapshotId: string): Promise<ControlPlaneState>
  /** The add-on runs from now on, with this token; one that runs takes a new one without being started anew. */
  grant(id: string, addon: string, grant: AddonGrant): Promise<void>
  /** Makes one that its host has lost anew, with its keys and as that snapshot in the place has it, and at the port
   *  where its clients look for it when that is free. Of one that is not lost it is a restore. */
  recover(
    desired: ControlPlaneDesired,
    place: SnapshotPlace,
    restoreId: string,
    snapshotId: string,
    endpointPort: number | null,
  ): Promise<ControlPlaneState>
  nodes(id: string): Promise<readonly ControlPlaneNode[]>
  /** For the platform itself, of a service account with that role. */
  userToken(id: string, role: ClusterRole, seconds: number): Promise<ControlPlaneToken>
  /** Of a service account of that id and role, which is made for one person or token. */
  personToken(id: string, person: Person, seconds: number): Promise<ControlPlaneToken>
  /** The service account is gone, and every token of it worthless. Free for one that is not there. */
  removePerson(id: string, person: Person): Promise<void>
  /** One token, with which the nodes of one pool join, and no other. */
  joinToken(id: string, tokenId: string, pool: string, seconds: number): Promise<ControlPlaneToken>
  /** Nothing of it is left, nor of what the pool's nodes may do before they have joined. */
  removeJoinToken(id: string, tokenId: string, pool: string): Promise<void>
  /** Those of kubelets that wait to be judged. */
  servingRequests(id: string): Promise<readonly ServingRequest[]>
  /** Free for one that is judged or gone. */
  approveServing(id: string, request: string): Promise<void>
  /** The node has these labels and taints, and none that it was told to have before; others stay. Free for one that is
   *  not there. */
  markNode(id: string, node: string, marks: NodeMarks): Promise<void>
  /** Evicts the pods of a node, within their budgets; true when none is left that must go. */
  drain(id: string, node: string): Promise<boolean>
  /** It takes pods again. Free for one that is not there. */
  uncordon(id: string, node: string): Promise<void>
  /** What its nodes and pods need and have. */
  load(id: string): Promise<ClusterLoad>
  removeNode(id: string, node: string): Promise<void>
  /** The agent of the organisation platform consists of these objects, and of none that it had before. Refuses what an
   *  agent has no use for. */
  setAgent(id: string, objects: readonly AgentObject[]): Promise<void>
}
