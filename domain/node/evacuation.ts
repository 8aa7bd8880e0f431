/** Draining a node: whether its guests would find room elsewhere. Pure. */
import { type Apartness, type Candidate, type Demand, type Place, rankNodes, type Room } from './placement.ts'

export interface Evacuee {
  readonly serverId: string
  readonly accountId: string
  readonly room: Room
  readonly cpuPool?: string | undefined
  /** The group of which it is a member. */
  readonly group?: SpreadGroup | undefined
}

/** Servers of two accounts may have the same name. */
export const evacueeKey = (accountId: string, serverId: string): string => `${accountId}/${serverId}`

export interface SpreadGroup extends Omit<Apartness, 'members'> {
  /** The places of the other members, and their destinations. */
  readonly others: readonly (Place & { readonly serverId: string })[]
}

/** The guests that would find no node in the zone, other than the one they leave, with room and far enough from their
 *  group, when all of them leave: the largest choose first. */
export function findUnplaceable(
  leaving: { readonly node: string; readonly zone: string },
  guests: readonly Evacuee[],
  candidates: readonly Candidate[],
): readonly string[] {
  const unplaceable: string[] = []
  const homes = new Map<string, Place>()
  let nodes = candidates
  for (const { serverId, accountId, room, cpuPool, group } of [...guests].sort(largestFirst)) {
    const apartness = group && {
      ...group,
      members: group.others.map((other) => homes.get(evacueeKey(accountId, other.serverId)) ?? other),
    }
    const demand: Demand = { accountId, zone: leaving.zone, ...room, cpuPool, excludedNodes: [leaving.node], apartness }
    const [home] = rankNodes(demand, nodes)
    if (home === undefined) unplaceable.push(serverId)
    else {
      homes.set(evacueeKey(accountId, serverId), home)
      nodes = nodes.map((node) => (node === home ? { ...node, used: plus(node.used, room) } : node))
    }
  }
  return unplaceable.sort()
}

const largestFirst = (one: Evacuee, other: Evacuee): number =>
  other.room.memoryMebibytes - one.room.memoryMebibytes ||
  other.room.cores - one.room.cores ||
  other.room.storageGibibytes - one.room.storageGibibytes ||
  (one.serverId < other.serverId ? -1 : 1)

export const plus = (one: Room, other: Room): Room => ({
  cores: one.cores + other.cores,
  memoryMebibytes: one.memoryMebibytes + other.memoryMebibytes,
  storageGibibytes: one.storageGibibytes + other.storageGibibytes,
})
