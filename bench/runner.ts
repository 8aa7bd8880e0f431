/** Runs a benchmark as pairs of subject and peer in the same process run, in the order A B B A, and reports the median
 *  of the pair ratios.
 *  Absolute figures say more about the machine than about the code; ratios of neighbours do not. A pair whose machine
 *  floor moved by more
 *  than half is thrown away; with too few pairs left the result is "noisy", never "slow". */
import { systemClock } from '../kit/sys/clock.ts'

export interface Side {
  /** Does the work for about the given time and says how many units it did. */
  run(seconds: number): Promise<{ readonly units: number; readonly seconds: number }>
}

export interface Bench {
  readonly name: string
  /** What the ratio means, one line. */
  readonly question: string
  readonly subjectName: string
  readonly peerName: string
  readonly unit: string
  /** The ratio of throughputs subject / peer that is wished for. */
  readonly goal: number
  open(): Promise<{
    readonly subject: Side
    readonly peer: Side
    readonly facts?: () => Readonly<Record<string, string | number>>
    close(): Promise<void>
  }>
}

export interface BenchResult {
  readonly name: string
  readonly ratio: number
  readonly low: number
  readonly high: number
  readonly subjectPerSecond: number
  readonly peerPerSecond: number
  readonly pairs: number
  readonly isNoisy: boolean
  readonly facts: Readonly<Record<string, string | number>>
}

const PAIRS = 7
const PAIRS_MINIMUM = 5
const FLOOR_RATIO_MAXIMUM = 1.5

export async function measure(bench: Bench, seconds: number): Promise<BenchResult> {
  const world = await bench.open()
  try {
    await world.subject.run(seconds / 2)
    await world.peer.run(seconds / 2)
    const kept: { ratio: number; subject: number; peer: number }[] = []
    for (let pair = 0; pair < PAIRS; pair += 1) {
      const before = spinFloor()
      const isSubjectFirst = pair % 2 === 0
      const first = await perSecond(isSubjectFirst ? world.subject : world.peer, seconds)
      const second = await perSecond(isSubjectFirst ? world.peer : world.subject, seconds)
      const after = spinFloor()
      const [subject, peer] = isSubjectFirst ? [first, second] : [second, first]
      if (Math.max(before, after) / Math.min(before, after) <= FLOOR_RATIO_MAXIMUM)
        kept.push({ ratio: subject / peer, subject, peer })
    }
    const ratios = kept.map((pair) => pair.ratio).sort((a, b) => a - b)
    return {
      name: bench.name,
      ratio: median(ratios),
      low: ratios[0] ?? Number.NaN,
      high: ratios.at(-1) ?? Number.NaN,
      subjectPerSecond: median(kept.map((pair) => pair.subject)),
      peerPerSecond: median(kept.map((pair) => pair.peer)),
      pairs: kept.length,
      isNoisy: kept.length < PAIRS_MINIMUM,
      facts: world.facts?.() ?? {},
    }
  } finally {
    await world.close()
  }
}

async function perSecond(side: Side, seconds: number): Promise<number> {
  const { units, seconds: taken } = await side.run(seconds)
  return units / taken
}

/** How many turns an empty loop makes in a tenth of a second: what the machine gives just now. */
function spinFloor(): number {
  const until = systemClock.monotonicMilliseconds() + 100
  let turns = 0
  while (systemClock.monotonicMilliseconds() < until) turns += 1
  return turns
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2 // inside by length
}

/** Calls `work` from `clients` loops for the time and counts the calls. */
export async function closedLoop(
  clients: number,
  seconds: number,
  work: (client: number) => Promise<void>,
): Promise<{ units: number; seconds: number }> {
  const started = systemClock.monotonicMilliseconds()
  const until = started + seconds * 1000
  let units = 0
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (systemClock.monotonicMilliseconds() < until) {
        await work(client)
        units += 1
      }
    }),
  )
  return { units, seconds: (systemClock.monotonicMilliseconds() - started) / 1000 }
}
