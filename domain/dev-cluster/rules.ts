/** Dev clusters: Kubernetes for development on one server. When which change is allowed, and the texts about them. */
import { type ClusterRanges, rangesBeside } from '../kubernetes-cluster/rules.ts'
import { conflict } from '../problem.ts'

export const DEV_CLUSTER_STATES = ['creating', 'running', 'error', 'deleting', 'deleted'] as const
export type DevClusterState = (typeof DEV_CLUSTER_STATES)[number]

/** How long it may take until its API answers and its node is ready. */
export const DEV_CLUSTER_MINUTES = 30
/** How long its administrators' token is valid. */
export const DEV_KUBECONFIG_SECONDS = 28_800
/** Minimum memory of a plan: without any load, its programs take half of it. */
export const DEV_MEMORY_MEBIBYTES = 2_048
/** Service accounts of administrators that a cluster has, each for one holder at a time: `dev_cluster.py` creates
 *  them. */
export const DEV_ADMINS_MAXIMUM = 64
export const DEV_CLUSTER_ROLE = 'cluster'
/** Address of the node on the loopback interface of its machine, in no network. Its API server advertises it, so pods
 *  reach the API without leaving the machine. */
export const DEV_NODE_ADDRESS = '192.0.2.10'
export const DEV_API_PORT = 6_443
export const PRODUCTION_WARNING =
  'Not for production: one server is the control plane, the only node and the storage. It is not highly available, ' +
  'and has no node pools, upgrades or snapshots; volumes go with the server.'
/** Why a cluster that no guest runs cannot be accessed. */
export const SIMULATED_DETAIL = 'simulated: its host only counts, and nothing runs'

/** In the format of k3s versions; the suffix says that it is not k3s, but the programs of Kubernetes themselves. */
export const plainVersion = (release: string): string => (release === '' ? '' : `v${release}+plain`)

/** The issuer that its API expects in tokens of service accounts. Each cluster has its own, so that no other accepts
 *  them. */
export const serviceAccountIssuerOf = (id: string): string => `https://${id}.dev-clusters.svccloud.internal`

const IPV6_PODS = 'fd5c:c10d:1::/64'
const IPV6_SERVICES = 'fd5c:c10d:2::/112'
/** It is in no private network that a customer has. */
const NO_NETWORK = '203.0.113.0/24'

export interface DevClusterRanges extends ClusterRanges {
  readonly ipv6Pods: string
  readonly ipv6Services: string
}

/** The ranges of its pods and services, outside its private network, where it has one. */
export const devClusterRanges = (networkCidr: string = NO_NETWORK): DevClusterRanges => ({
  ...rangesBeside(networkCidr),
  ipv6Pods: IPV6_PODS,
  ipv6Services: IPV6_SERVICES,
})

export interface DevClusterFacts {
  readonly id: string
  readonly state: DevClusterState
  readonly isSimulated: boolean
}

const resourceOf = (id: string) => ({ type: 'dev_cluster', id })

/** Throws 409 for a cluster that is being deleted. */
export function requireDeletableDevCluster({ id, state }: DevClusterFacts): void {
  if (state === 'deleting')
    throw conflict('state_not_allowed', 'The dev cluster is being deleted.', { resource: resourceOf(id) })
}

/** Throws 409 unless it runs, and for a cluster that cannot be accessed. */
export function requireRunningDevCluster({ id, state, isSimulated }: DevClusterFacts): void {
  if (state !== 'running')
    throw conflict('state_not_allowed', `The dev cluster is ${state}; it must be running.`, {
      resource: resourceOf(id),
    })
  if (isSimulated)
    throw conflict('state_not_allowed', `Nobody gets into this cluster; ${SIMULATED_DETAIL}.`, {
      resource: resourceOf(id),
    })
}

/** Whether its time to start is over. */
export const isCreationOverdue = (createdAt: string, now: Date): boolean =>
  now.getTime() - Date.parse(createdAt) >= DEV_CLUSTER_MINUTES * 60_000
