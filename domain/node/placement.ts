/** Placement: which node a guest runs on. Pure; `db/placement/placement.ts` claims the room on the node. */

/** What a guest uses of a node, or a node offers. Cores are virtual cores, after overcommit. */
export interface Room {
  readonly cores: number
  readonly memoryMebibytes: number
  readonly storageGibibytes: number
}

const RESOURCES = ['cores', 'memoryMebibytes', 'storageGibibytes'] as const

const combine = (one: Room, other: Room, by: (a: number, b: number) => number): Room => ({
  cores: by(one.cores, other.cores),
  memoryMebibytes: by(one.memoryMebibytes, other.memoryMebibytes),
  storageGibibytes: by(one.storageGibibytes, other.storageGibibytes),
})
export const NO_ROOM: Room = { cores: 0, memoryMebibytes: 0, storageGibibytes: 0 }
export const isSameRoom = (one: Room, other: Room): boolean => RESOURCES.every((of) => one[of] === other[of])
export const times = (room: Room, count: number): Room => combine(room, room, (amount) => amount * count)
/** In every respect. */
export const largest = (one: Room, other: Room): Room => combine(one, other, Math.max)
/** The larger room minus the smaller one, in every respect. */
export const remainingRoom = (larger: Room, smaller: Room): Room => combine(larger, smaller, (a, b) => a - b)

/** A guest that is on a node, or may be started there. */
export interface GuestOnNode extends Room {
  readonly node: string
  /** Account and id of its server; undefined when they are unknown. */
  readonly accountId?: string | undefined
  readonly serverId?: string | undefined
}

export interface Candidate {
  readonly node: string
  readonly zone: string
  readonly rack: string
  readonly cpuPool: string | null
  /** Only this account's guests may use the node. */
  readonly dedicatedAccountId: string | null
  /** False while the node is cordoned, unreachable, draining or deleted. */
  readonly isSchedulable: boolean
  /** It reaches the store of the zone's backups; false when absent. */
  readonly hasBackups?: boolean
  readonly total: Room
  /** By claims, and by guests without claims. */
  readonly used: Room
  /** The part of it that is used by guests without claims: a store was restored to an older state. Zero when absent. */
  readonly forgotten?: Room
}

/** Where a guest is, for the question which guests fail together. Names of racks are unique in their zone only. */
export interface Place {
  readonly node: string
  readonly rack: string
  readonly zone: string
}

export const SPREADS = ['host', 'rack', 'zone'] as const
/** The failure domain that the members of a group do not share. */
export type Spread = (typeof SPREADS)[number]

/** Whether a guest at one place fails with a guest at the other. */
export const sharesDomain = (spread: Spread, one: Place, other: Place): boolean =>
  one.zone === other.zone &&
  (spread === 'zone' || (spread === 'rack' ? one.rack === other.rack : one.node === other.node))

/** The members that share a failure domain with one that is older; `members` are oldest first. */
export const unmetMembers = <Member extends Place>(spread: Spread, members: readonly Member[]): readonly Member[] =>
  members.filter((member, index) => members.slice(0, index).some((older) => sharesDomain(spread, older, member)))

/** Keeps a guest apart from the other members of its group. */
export interface Apartness {
  readonly spread: Spread
  /** Fails rather than use a failure domain of another member. */
  readonly isStrict: boolean
  /** The places of the others, and their destinations. */
  readonly members: readonly Place[]
}

export interface Demand extends Room {
  readonly accountId: string
  readonly zone: string
  /** Only nodes of this pool; any node when absent. */
  readonly cpuPool?: string | undefined
  /** Nodes that must not be chosen: the one that the guest leaves. */
  readonly excludedNodes?: readonly string[]
  readonly apartness?: Apartness | undefined
}

/** Whether the node may accept the demand and has room for it. */
export const canHold = (demand: Demand, node: Candidate): boolean => isAllowed(demand, node) && fits(demand, node)

const isAllowed = (demand: Demand, node: Candidate): boolean =>
  node.isSchedulable &&
  node.zone === demand.zone &&
  (demand.cpuPool === undefined || node.cpuPool === demand.cpuPool) &&
  (node.dedicatedAccountId === null || node.dedicatedAccountId === demand.accountId) &&
  !(demand.excludedNodes ?? []).includes(node.node) &&
  !(demand.apartness?.isStrict === true && sharing(demand.apartness, node)[0] > 0)

/** How many members share the node: in its failure domain by the group's rule, then on the node itself, then in the
 *  rack. */
type Sharing = readonly [number, number, number]
const sharing = ({ spread, members }: Apartness, node: Place): Sharing => {
  const count = (domain: Spread): number => members.filter((member) => sharesDomain(domain, member, node)).length
  return [count(spread), count('host'), count('rack')]
}
const ALONE: Sharing = [0, 0, 0]

const fits = (demand: Room, node: Candidate): boolean =>
  RESOURCES.every((resource) => node.used[resource] + demand[resource] <= node.total[resource])

/** How much of the node is free, as a sum of fractions (0 = full in every respect, 3 = empty). PostgreSQL computes
 *  exactly the same sum (`free_share` of `node_capacity`). */
const freeShareOf = ({ total, used }: Candidate): number =>
  RESOURCES.reduce((sum, resource) => sum + (total[resource] === 0 ? 0 : 1 - used[resource] / total[resource]), 0)

/** The nodes that can hold the demand, best first: the account's own nodes, then those with the fewest members of the
 *  guest's group in the same failure domain, then the fullest, of equally full ones the smallest (large guests still
 *  find room later), then by name, so that the answer never depends on the order of the candidates. */
export function rankNodes(demand: Demand, candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates
    .filter((node) => canHold(demand, node))
    .map((node) => ({
      node,
      isOwn: node.dedicatedAccountId === demand.accountId,
      freeShare: freeShareOf(node),
      shared: demand.apartness === undefined ? ALONE : sharing(demand.apartness, node),
    }))
    .sort(
      (a, b) =>
        Number(b.isOwn) - Number(a.isOwn) ||
        compareSharing(a.shared, b.shared) ||
        a.freeShare - b.freeShare ||
        a.node.total.cores - b.node.total.cores ||
        a.node.total.memoryMebibytes - b.node.total.memoryMebibytes ||
        (a.node.node < b.node.node ? -1 : 1),
    )
    .map((entry) => entry.node)
}

const compareSharing = (one: Sharing, other: Sharing): number =>
  one[0] - other[0] || one[1] - other[1] || one[2] - other[2]

/** What a node offers to guests. `cpuOvercommit` virtual cores are sold for each logical CPU. */
export function offeredRoom(host: {
  readonly logicalCpus: number
  readonly memoryMebibytes: number
  readonly storageGibibytes: number
  readonly cpuOvercommit: number
  readonly reservedMemoryMebibytes: number
}): Room {
  return {
    cores: host.logicalCpus * host.cpuOvercommit,
    memoryMebibytes: Math.max(0, host.memoryMebibytes - host.reservedMemoryMebibytes),
    storageGibibytes: host.storageGibibytes,
  }
}
