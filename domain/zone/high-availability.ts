/** Whether a zone could act on the policy of its servers if it lost a node: it needs a destination, disks that are
 *  reachable from there, proof that the lost node runs nothing, and room. Pure. */
import { type Evacuee, findUnplaceable } from '../node/evacuation.ts'
import type { Candidate } from '../node/placement.ts'

/** The facts about a node for this question. */
export interface Host {
  readonly node: string
  /** Its agent renews its heartbeat. */
  readonly isReachable: boolean
  /** Shared storage that it reaches. */
  readonly pools: readonly string[]
  /** Its power can be cut and confirmed to be off, or its shared storage can block it. */
  readonly isFenceCapable: boolean
}

export const HA_REASONS = {
  one_node: 'The zone has only one compute node that answers: a server could not go on elsewhere.',
  no_shared_storage:
    'The zone has no storage that two of its nodes reach: the disk of a server would be lost with its node.',
  no_fencing: 'The zone has a node that cannot be fenced from afar: its servers would wait for a person.',
  no_headroom: 'The zone has no room for the servers of its fullest node on the others.',
} as const

/** Why it could not, for people; undefined when it could. `guests` are those of the fullest node (`fullestOf`). */
export function haObstacle(
  zone: string,
  hosts: readonly Host[],
  nodes: readonly Candidate[],
  guests: readonly Evacuee[],
): string | undefined {
  const reachable = hosts.filter(({ isReachable }) => isReachable)
  if (reachable.length < 2) return HA_REASONS.one_node
  const pools = reachable.flatMap(({ pools }) => pools)
  if (!pools.some((pool, index) => pools.indexOf(pool) !== index)) return HA_REASONS.no_shared_storage
  if (!hosts.every((host) => host.isFenceCapable)) return HA_REASONS.no_fencing
  const fullest = fullestOf(nodes)
  const others = nodes.filter(({ node, isSchedulable }) => node !== fullest && isSchedulable)
  return fullest !== undefined && findUnplaceable({ node: fullest, zone }, guests, others).length > 0
    ? HA_REASONS.no_headroom
    : undefined
}

/** The node whose loss would need the most memory elsewhere; among equals the first by name. */
export const fullestOf = (nodes: readonly Candidate[]): string | undefined =>
  [...nodes].sort(
    (one, other) => other.used.memoryMebibytes - one.used.memoryMebibytes || (one.node < other.node ? -1 : 1),
  )[0]?.node
