/** What the nodes of a zone offer, and whether they could tolerate the loss of one. Pure. */
import { type Evacuee, findUnplaceable } from '../node/evacuation.ts'
import { type Candidate, rankNodes, type Room } from '../node/placement.ts'

export interface OfferedPlan extends Room {
  readonly name: string
  readonly cpuPool?: string | undefined
}

export interface Capacity {
  readonly zone: string
  readonly cpuPool: string | null
  readonly nodeCount: number
  /** Sellable, after overcommit. */
  readonly vcpus: number
  readonly vcpusUsed: number
  readonly memoryMebibytes: number
  readonly memoryUsedMebibytes: number
  /** What some node has room for now, for anybody. */
  readonly largestPlaceablePlan: string | null
  readonly hasHaHeadroom: boolean
}

/** One item per zone and pool of processors, by name. `guestsOf` returns the guests of one of the largest nodes. */
export function summariseCapacity(
  nodes: readonly Candidate[],
  plans: readonly OfferedPlan[],
  guestsOf: (node: string) => readonly Evacuee[],
): readonly Capacity[] {
  return groupsOf(nodes)
    .flatMap((group) => (group[0] === undefined ? [] : [summarise(group[0], group, nodes, plans, guestsOf)]))
    .sort((one, other) => compareTexts(one.zone, other.zone) || compareTexts(one.cpuPool ?? '', other.cpuPool ?? ''))
}

/** The nodes whose loss is planned for: the largest of each zone and pool. */
export const largestNodes = (nodes: readonly Candidate[]): readonly string[] =>
  groupsOf(nodes).flatMap((group) => largestOf(group)?.node ?? [])

const groupsOf = (nodes: readonly Candidate[]): readonly (readonly Candidate[])[] => [
  ...Map.groupBy(nodes, ({ zone, cpuPool }) => JSON.stringify([zone, cpuPool])).values(),
]

/** Among equals, the fullest. */
const largestOf = (group: readonly Candidate[]): Candidate | undefined =>
  [...group].sort(
    (one, other) =>
      other.total.memoryMebibytes - one.total.memoryMebibytes ||
      other.used.memoryMebibytes - one.used.memoryMebibytes ||
      compareTexts(one.node, other.node),
  )[0]

function summarise(
  { zone, cpuPool }: Candidate,
  group: readonly Candidate[],
  all: readonly Candidate[],
  plans: readonly OfferedPlan[],
  guestsOf: (node: string) => readonly Evacuee[],
): Capacity {
  const sum = (amount: (node: Candidate) => number): number => group.reduce((total, node) => total + amount(node), 0)
  return {
    zone,
    cpuPool,
    nodeCount: group.length,
    vcpus: sum(({ total }) => total.cores),
    vcpusUsed: sum(({ used }) => used.cores),
    memoryMebibytes: sum(({ total }) => total.memoryMebibytes),
    memoryUsedMebibytes: sum(({ used }) => used.memoryMebibytes),
    largestPlaceablePlan: largestPlaceable(zone, group, plans),
    hasHaHeadroom: hasHeadroom(zone, group, all, guestsOf),
  }
}

const largestPlaceable = (zone: string, group: readonly Candidate[], plans: readonly OfferedPlan[]): string | null =>
  [...plans]
    .sort(
      (one, other) =>
        other.memoryMebibytes - one.memoryMebibytes ||
        other.cores - one.cores ||
        other.storageGibibytes - one.storageGibibytes ||
        compareTexts(one.name, other.name),
    )
    .find(({ name: _name, ...demand }) => rankNodes({ accountId: '', zone, ...demand }, group).length > 0)?.name ?? null

/** Whether every guest of the largest node would find room on the zone's other nodes. True for a zone whose nodes have
 *  no guests, as long as there is a second node. */
function hasHeadroom(
  zone: string,
  group: readonly Candidate[],
  all: readonly Candidate[],
  guestsOf: (node: string) => readonly Evacuee[],
): boolean {
  const largest = largestOf(group)
  const others = all.filter((node) => node.zone === zone && node.node !== largest?.node && node.isSchedulable)
  return (
    largest !== undefined &&
    others.length > 0 &&
    findUnplaceable({ node: largest.node, zone }, guestsOf(largest.node), others).length === 0
  )
}

const compareTexts = (one: string, other: string): number => (one === other ? 0 : one < other ? -1 : 1)
