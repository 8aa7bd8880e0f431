/** Emptying a node: whether those who are on it would find room elsewhere. Pure. */
import { type Candidate, type Demand, rankNodes, type Room } from './placement.ts'

export interface Evacuee {
  readonly serverId: string
  readonly accountId: string
  readonly room: Room
  readonly cpuPool?: string | undefined
}

/** Those of the guests for whom no node of the zone but the one they leave has room, when all of them leave: the largest choose first.
 *  An account's group may need more room still; that shows when its member is moved. */
export function findHomeless(leaving: { readonly node: string; readonly zone: string }, guests: readonly Evacuee[], candidates: readonly Candidate[]): readonly string[] {
  const homeless: string[] = []
  let nodes = candidates
  for (const { serverId, accountId, room, cpuPool } of [...guests].sort(largestFirst)) {
    const demand: Demand = { accountId, zone: leaving.zone, ...room, cpuPool, excludedNodes: [leaving.node] }
    const [home] = rankNodes(demand, nodes)
    if (home === undefined) homeless.push(serverId)
    else nodes = nodes.map((node) => (node === home ? { ...node, used: plus(node.used, room) } : node))
  }
  return homeless.sort()
}

const largestFirst = (one: Evacuee, other: Evacuee): number =>
  other.room.memoryMebibytes - one.room.memoryMebibytes || other.room.cores - one.room.cores || other.room.storageGibibytes - one.room.storageGibibytes || (one.serverId < other.serverId ? -1 : 1)

export const plus = (one: Room, other: Room): Room => ({
  cores: one.cores + other.cores, memoryMebibytes: one.memoryMebibytes + other.memoryMebibytes, storageGibibytes: one.storageGibibytes + other.storageGibibytes,
})
