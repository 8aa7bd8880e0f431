/** Managed Kubernetes clusters: versions, names, snapshots, and when which change is allowed. */
import { overlapping } from '../network/rules.ts'
import { parseBackupSchedule } from '../backup/schedule.ts'
import { conflict, operationInProgress, Problem } from '../problem.ts'

export const CLUSTER_STATES = ['creating', 'running', 'upgrading', 'restoring', 'error', 'deleting', 'deleted'] as const
export type ClusterState = (typeof CLUSTER_STATES)[number]
export const SNAPSHOT_KINDS = ['scheduled', 'manual', 'pre_upgrade', 'pre_restore'] as const
export type SnapshotKind = (typeof SNAPSHOT_KINDS)[number]
export const isSnapshotKind = (text: string | undefined): text is SnapshotKind =>
  SNAPSHOT_KINDS.some((kind) => kind === text)

export const CLUSTER_NAME = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])$/,
  least: 2,
  most: 40,
} as const
export const SNAPSHOT_SCHEDULE_DEFAULT = '0 */6 * * *'
/** How many of each kind are kept. */
export const SNAPSHOT_RETENTION = { least: 1, most: 120, default: 28 } as const
export const KUBECONFIG_SECONDS = { least: 600, most: 86_400, default: 28_800 } as const
/** API servers and members of etcd of a cluster; one where its host has memory for a few clusters only. */
export const REPLICAS = 3
/** How long a cluster without quorum may recover by itself. */
const QUORUM_MINUTES = 30
/** The issuer of people's tokens. API servers get its keys from their host. The name resolves to nothing, which keeps
 *  clusters usable while the platform's API is away, and Kubernetes requires it to be https. */
export const TOKEN_ISSUER_URL = 'https://kubernetes.svccloud.internal'
/** How long a token of the issuer is accepted. */
export const TOKEN_SECONDS = 900
/** Labels of resources that programs of a cluster create in its account: the cluster, the name of a volume or a
 *  snapshot in it, and the service of a load balancer. */
export const CLUSTER_LABELS = {
  cluster: 'kubernetes-cluster',
  volume: 'csi-name',
  service: 'kubernetes-service-uid',
} as const
export const MINOR_PATTERN = /^1\.\d{1,3}$/

/** Why snapshots cannot be scheduled at that time; undefined when they can. */
export function snapshotScheduleFault(text: string): string | undefined {
  const schedule = parseBackupSchedule(text)
  return 'fault' in schedule ? schedule.fault : undefined
}

/** `1.36` of `1.36.3`. */
export const minorOf = (release: string): string => release.split('.').slice(0, 2).join('.')
const numberOf = (version: string): number => Number(version.split('.')[1])
const patchOf = (release: string): number => Number(release.split('.')[2])

/** By number, oldest first. */
const byAge = (one: string, other: string): number => numberOf(one) - numberOf(other) || patchOf(one) - patchOf(other)

/** The newest release of the minor version; undefined when none is offered. */
export const newestRelease = (minor: string, releases: readonly string[]): string | undefined =>
  releases
    .filter((release) => minorOf(release) === minor)
    .toSorted(byAge)
    .at(-1)

/** Minor versions that are offered, newest first. */
export const minorsOf = (releases: readonly string[]): readonly string[] =>
  [...new Set(releases.map(minorOf))].toSorted((one, other) => numberOf(other) - numberOf(one))

/** The minor version after this one; undefined when it is not offered. */
export const nextMinor = (minor: string, releases: readonly string[]): string | undefined =>
  minorsOf(releases).find((each) => numberOf(each) === numberOf(minor) + 1)

/** When upstream support ends (kubernetes.io/releases); undefined for a version that is not known here. */
export const endOfLife = (minor: string): Date | undefined => {
  const date = ENDS_OF_LIFE[minor]
  return date === undefined ? undefined : new Date(`${date}T00:00:00Z`)
}
const ENDS_OF_LIFE: Readonly<Record<string, string>> = {
  '1.33': '2026-06-28',
  '1.34': '2026-10-27',
  '1.35': '2027-02-28',
  '1.36': '2027-06-28',
}

/** How a cluster gets from its release to that version. */
export type UpgradeJudgement =
  | { readonly release: string }
  /** Words that complete "version". */
  | { readonly fault: string }

/** One minor version at a time, never back; the same minor version for its newest patch. */
export function judgeUpgrade(current: string, version: string, releases: readonly string[]): UpgradeJudgement {
  const release = newestRelease(version, releases)
  if (release === undefined) return { fault: `is not offered here; offered are ${minorsOf(releases).join(', ')}` }
  const step = numberOf(version) - numberOf(current)
  if (step < 0) return { fault: `is older than the cluster, which runs ${current}` }
  if (step > 1) return { fault: `skips a minor version: the cluster runs ${current}` }
  if (byAge(release, current) <= 0) return { fault: `has nothing newer than ${current}` }
  return { release }
}

/** A snapshot can be restored by the same minor version or a newer one. */
export const isOfNewerMinor = (release: string, current: string): boolean => numberOf(release) > numberOf(current)

/** Ranges of pods and services that customers cannot have chosen for a network, so that every cluster has a free
 *  pair. */
const RANGES = [
  { pods: '172.20.0.0/16', services: '172.21.0.0/16' },
  { pods: '10.244.0.0/16', services: '10.245.0.0/16' },
  { pods: '192.168.0.0/17', services: '192.168.128.0/17' },
] as const

export interface ClusterRanges {
  readonly pods: string
  readonly services: string
}

/** The first pair that the network does not overlap: it overlaps one at most. */
export function rangesBeside(networkCidr: string): ClusterRanges {
  const ranges = RANGES.find(
    ({ pods, services }) => overlapping(networkCidr, [{ cidr: pods }, { cidr: services }]).length === 0,
  )
  if (ranges === undefined) throw new Error(`${networkCidr} overlaps everything`)
  return ranges
}

/** Whether it has been without quorum for too long to wait longer. */
export const isQuorumGivenUp = (quorumLostAt: string | undefined, now: Date): boolean =>
  quorumLostAt !== undefined && now.getTime() - Date.parse(quorumLostAt) >= QUORUM_MINUTES * 60_000

export interface ClusterFacts {
  readonly id: string
  readonly state: ClusterState
  readonly isProtected: boolean
  readonly isDeleting: boolean
  readonly activeOperation: { readonly id: string; readonly kind: string } | undefined
}

const resourceOf = (id: string) => ({ type: 'kubernetes_cluster', id })

/** Throws 409 for a cluster that is being deleted. */
export function requireChangeableCluster({ id, isDeleting, activeOperation }: ClusterFacts): void {
  if (activeOperation?.kind === 'kubernetes_cluster.delete')
    throw operationInProgress(activeOperation.id, resourceOf(id))
  if (isDeleting) throw conflict('state_not_allowed', 'The cluster is being deleted.', { resource: resourceOf(id) })
}

/** Throws 409 for a cluster with another operation under way. */
function requireIdle(facts: ClusterFacts): void {
  requireChangeableCluster(facts)
  if (facts.activeOperation !== undefined) throw operationInProgress(facts.activeOperation.id, resourceOf(facts.id))
}

/** Throws 409 unless its control plane runs, whatever operation is under way. */
export function requireServingCluster(facts: ClusterFacts): void {
  requireChangeableCluster(facts)
  if (facts.state !== 'running' && facts.state !== 'upgrading') throw notIn('running', facts)
}

/** Throws 409 unless it runs and no operation is under way. */
export function requireRunningCluster(facts: ClusterFacts): void {
  requireIdle(facts)
  if (facts.state !== 'running') throw notIn('running', facts)
}

/** Throws 409 for a cluster that was never created, or that has an operation under way. */
export function requireRestorableCluster(facts: ClusterFacts): void {
  requireIdle(facts)
  if (facts.state !== 'running' && facts.state !== 'error') throw notIn('running or in error', facts)
}

/** Throws 409 for a cluster that cannot be deleted. One that is still being created can: its creation stops. */
export function requireDeletableCluster({ id, isProtected, activeOperation }: ClusterFacts): void {
  if (activeOperation?.kind === 'kubernetes_cluster.delete')
    throw operationInProgress(activeOperation.id, resourceOf(id))
  if (isProtected)
    throw conflict('protected', 'The cluster is protected. Lift the protection, then delete it.', {
      resource: resourceOf(id),
    })
}

const notIn = (wanted: string, { id, state }: ClusterFacts): Problem =>
  conflict('state_not_allowed', `The cluster is ${state}; it must be ${wanted}.`, { resource: resourceOf(id) })
