/** Node pools of managed Kubernetes clusters: the settings of their nodes, when which change is allowed, and the rules
 *  of a kubelet's certificate request. */
import { createHash } from 'node:crypto'
import type { IdleFacts } from '../idle-rules.ts'
import { minorOf } from '../kubernetes-cluster/rules.ts'
import { conflict, operationInProgress } from '../problem.ts'

export const NODES_MAXIMUM = 100
export const TAINTS_MAXIMUM = 16
export const NODE_LABELS_MAXIMUM = 32
export const POOL_NAME = { pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, least: 1, most: 40 } as const
export const TAINT_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const
export const POOL_STATES = ['creating', 'running', 'scaling', 'upgrading', 'deleting', 'deleted', 'error'] as const
export type PoolState = (typeof POOL_STATES)[number]

/** A node is at most so many minor versions older than the control plane, and never newer (kubernetes.io/releases). */
const SKEW_MAXIMUM = 3
/** How long disruption budgets may keep the pods of a node that is being removed. */
export const DRAIN_MINUTES = 10
/** How long the token is valid with which a node requests its first certificate, and the remaining time at which it is
 *  replaced while nodes wait. */
export const JOIN_SECONDS = 3_600
const JOIN_RENEW_SECONDS = 900
const HOSTNAME_DIGEST = 5
const LABEL_NAME = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$/
const LABEL_PREFIX = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/
/** Prefixes of keys that Kubernetes and the platform set. */
const OWN_PREFIX = /(^|\.)(kubernetes\.io|k8s\.io|svccloud\.dev)$/

export interface Taint {
  readonly key: string
  readonly value: string
  readonly effect: (typeof TAINT_EFFECTS)[number]
}

/** Why customers cannot use the key in Kubernetes; undefined when they can. */
function keyFault(key: string): string | undefined {
  const [prefix, name] = key.includes('/') ? splitOnce(key) : [undefined, key]
  if (!LABEL_NAME.test(name) || (prefix !== undefined && !LABEL_PREFIX.test(prefix)))
    return `${key} is no key of Kubernetes: [prefix/]name, of at most 63 letters, digits, "-", "_" and "."`
  if (prefix !== undefined && OWN_PREFIX.test(prefix)) return `${key} is given by Kubernetes or the platform`
  return undefined
}

const splitOnce = (key: string): readonly [string, string] => {
  const at = key.indexOf('/')
  return [key.slice(0, at), key.slice(at + 1)]
}

const valueFault = (key: string, value: string): string | undefined =>
  LABEL_VALUE.test(value)
    ? undefined
    : `${key} has no value of Kubernetes: at most 63 letters, digits, "-", "_" and "."`

/** Why nodes cannot have these labels; undefined when they can. */
export function nodeLabelsFault(labels: Readonly<Record<string, string>>): string | undefined {
  if (Object.keys(labels).length > NODE_LABELS_MAXIMUM) return `are more than ${NODE_LABELS_MAXIMUM}`
  for (const [key, value] of Object.entries(labels)) {
    const fault = keyFault(key) ?? valueFault(key, value)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Why nodes cannot have these taints; undefined when they can. */
export function taintsFault(taints: readonly Taint[]): string | undefined {
  const keys = new Set<string>()
  for (const { key, value, effect } of taints) {
    const fault = keyFault(key) ?? valueFault(key, value)
    if (fault !== undefined) return fault
    if (keys.has(`${key}:${effect}`)) return `${key} with ${effect} is there twice`
    keys.add(`${key}:${effect}`)
  }
  return undefined
}

const numberOf = (version: string): number => Number(version.split('.')[1])

/** Why nodes cannot run that minor version beside a control plane of this release, as words that complete "version";
 *  undefined when they can. */
export function poolVersionFault(version: string, controlPlane: string): string | undefined {
  const behind = numberOf(minorOf(controlPlane)) - numberOf(version)
  if (behind < 0) return `is newer than the control plane, which runs ${controlPlane}`
  return behind > SKEW_MAXIMUM ? `is too old for the control plane, which runs ${controlPlane}` : undefined
}

/** Throws 409 for a pool that is being deleted. Any other operation is cancelled. */
export function requireDeletablePool({ id, isDeleting, activeOperation }: IdleFacts): void {
  const resource = { type: 'node_pool', id }
  if (activeOperation?.action === 'delete') throw operationInProgress(activeOperation.id, resource)
  if (isDeleting) throw conflict('state_not_allowed', 'The node pool is being deleted.', { resource })
}

interface NamedPool {
  readonly name: string
  readonly uid: string
}
const prefixOf = ({ name, uid }: NamedPool): string =>
  `${name}-${createHash('sha256').update(uid).digest('hex').slice(0, HOSTNAME_DIGEST)}-`

/** Name of a node in its cluster, which is the host name of its server: determined by the pool and the node's
 *  number. */
export const nodeNameOf = (pool: NamedPool, number: number): string => `${prefixOf(pool)}${number}`

/** The number in the name of a node; undefined when the name is not that of a node of the pool. */
export function nodeNumberOf(pool: NamedPool, nodeName: string): number | undefined {
  const prefix = prefixOf(pool)
  const text = nodeName.startsWith(prefix) ? nodeName.slice(prefix.length) : ''
  return /^\d{1,3}$/.test(text) ? Number(text) : undefined
}

/** Id of the pool's next bootstrap token: known before it is requested, and different each time. */
export const joinTokenId = (uid: string, after: string): string =>
  createHash('sha256').update(`${uid}/${after}`).digest('hex').slice(0, 6)

/** Whether waiting nodes can still be given the token. */
export const isJoinable = (expiresAt: string | undefined, now: Date): boolean =>
  expiresAt !== undefined && Date.parse(expiresAt) - now.getTime() > JOIN_RENEW_SECONDS * 1_000

/** Whether the time of the node's pods is over. */
export const isDrainOver = (since: string, now: Date): boolean =>
  now.getTime() - Date.parse(since) >= DRAIN_MINUTES * 60_000

/** A request for the certificate with which a kubelet serves, as the cluster's API shows it. */
export interface ServingRequest {
  readonly name: string
  /** The requester. */
  readonly username: string
  readonly groups: readonly string[]
  readonly usages: readonly string[]
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly dnsNames: readonly string[]
  readonly ipAddresses: readonly string[]
  /** It requests something else too: names of other kinds, further extensions. */
  readonly hasMore: boolean
}

const NODES_GROUP = 'system:nodes'
const SERVING_USAGES: readonly string[] = ['digital signature', 'key encipherment', 'server auth']

/** Whether the kubelet of that node may make the request: for itself, with its own name and addresses of its server.
 *  Addresses are compared as text: both sides are canonical. */
export function isOwnRequest(
  request: ServingRequest,
  node: { readonly name: string; readonly addresses: readonly string[] },
): boolean {
  const user = `system:node:${node.name}`
  return (
    !request.hasMore &&
    request.username === user &&
    request.commonName === user &&
    request.groups.includes(NODES_GROUP) &&
    request.organizations.length === 1 &&
    request.organizations[0] === NODES_GROUP &&
    request.usages.includes('server auth') &&
    request.usages.every((usage) => SERVING_USAGES.includes(usage)) &&
    request.dnsNames.every((name) => name === node.name) &&
    request.ipAddresses.length > 0 &&
    request.ipAddresses.every((address) => node.addresses.includes(address))
  )
}
