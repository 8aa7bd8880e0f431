/** Placement: which node takes a guest. Pure; claiming the room on the node is `db/placement.ts`. */

/** What a guest takes of a node, or a node offers. Cores are virtual cores, after overcommit. */
export interface Room {
  readonly cores: number
  readonly memoryMebibytes: number
  readonly storageGibibytes: number
}

export interface Candidate {
  readonly node: string
  readonly zone: string
  readonly rack: string
  readonly cpuPool: string | null
  /** Only this account's guests may use the node. */
  readonly dedicatedAccountId: string | null
  /** False while the node is cordoned, unreachable, draining or gone. */
  readonly isSchedulable: boolean
  readonly total: Room
  readonly used: Room
}

export interface Demand extends Room {
  readonly accountId: string
  readonly zone: string
  /** Only nodes of this pool; any node when absent. */
  readonly cpuPool?: string | undefined
  /** Nodes that must not be chosen: the one that is being left, or (strict groups) those that hold a member. */
  readonly excludedNodes?: readonly string[]
}

const RESOURCES = ['cores', 'memoryMebibytes', 'storageGibibytes'] as const

/** Whether the node may take the demand and has room for it. */
export const canHold = (demand: Demand, node: Candidate): boolean => isAllowed(demand, node) && fits(demand, node)

const isAllowed = (demand: Demand, node: Candidate): boolean =>
  node.isSchedulable &&
  node.zone === demand.zone &&
  (demand.cpuPool === undefined || node.cpuPool === demand.cpuPool) &&
  (node.dedicatedAccountId === null || node.dedicatedAccountId === demand.accountId) &&
  !(demand.excludedNodes ?? []).includes(node.node)

const fits = (demand: Room, node: Candidate): boolean => RESOURCES.every((resource) => node.used[resource] + demand[resource] <= node.total[resource])

/** How much of the node would stay free, as a sum of fractions (0 = full in every respect, 3 = empty). */
const leftover = (demand: Room, node: Candidate): number =>
  RESOURCES.reduce((sum, resource) => sum + (node.total[resource] === 0 ? 0 : 1 - (node.used[resource] + demand[resource]) / node.total[resource]), 0)

/** The nodes that can hold the demand, best first: the account's own nodes, then the fullest (large guests still find room
 *  later), then by name, so that the answer never depends on the order of the candidates. */
export function rankNodes(demand: Demand, candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates
    .filter((node) => canHold(demand, node))
    .map((node) => ({ node, isOwn: node.dedicatedAccountId === demand.accountId, leftover: leftover(demand, node) }))
    .sort((a, b) => Number(b.isOwn) - Number(a.isOwn) || a.leftover - b.leftover || (a.node.node < b.node.node ? -1 : 1))
    .map((entry) => entry.node)
}

/** What a node offers to guests. `cpuOvercommit` virtual cores are sold for each logical CPU. */
export function offeredRoom(host: {
  readonly logicalCpus: number; readonly memoryMebibytes: number; readonly storageGibibytes: number
  readonly cpuOvercommit: number; readonly reservedMemoryMebibytes: number
}): Room {
  return {
    cores: host.logicalCpus * host.cpuOvercommit,
    memoryMebibytes: Math.max(0, host.memoryMebibytes - host.reservedMemoryMebibytes),
    storageGibibytes: host.storageGibibytes,
  }
}
