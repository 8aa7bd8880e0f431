/** Runs a benchmark as pairs of subject and peer in the same process run, in the order A B B A, and reports the median
 *  of the pair ratios. Absolute figures depend more on the machine than on the code; ratios of neighbours do not. A
 *  pair whose machine floor moved by more than half is discarded; with too few pairs left the result is "noisy", never
 *  "slow". */
import { systemClock } from '../kit/sys/clock.ts'

export interface Side {
  /** Does the work for about the given time and returns how many units it did. */
  run(seconds: number): Promise<{ readonly units: number; readonly seconds: number }>
}

/** A short round has few objects and one pair: the tests run it, so that every benchmark keeps working. */
export type Round = 'full' | 'short'

export interface Bench {
  readonly name: string
  /** What the ratio means, one line. */
  readonly question: string
  readonly subjectName: string
  readonly peerName: string
  readonly unit: string
  /** The denominator of the rate; `s` when absent, otherwise it names the meaning of a side's `seconds`. */
  readonly per?: string
  /** The minimum ratio of throughputs subject / peer. */
  readonly goal: number
  /** Maximum values of facts. */
  readonly limits?: Readonly<Record<string, number>>
  /** The number of pairs, when each takes long. */
  readonly pairs?: number
  /** It counts, and measures no time: no pair is discarded. */
  readonly isCount?: boolean
  /** What prevents it from reaching a goal that it has not reached. */
  readonly heldBy?: string
  /** The tier of tests with the same requirements of a machine. */
  readonly tier: 'database' | 'qemu' | 'network' | 'e2e' | 'cluster' | 'browser'
  /** A program that is the peer, which the machine may lack. */
  readonly program?: string
  open(round: Round): Promise<World>
}

export interface World {
  readonly subject: Side
  readonly peer: Side
  /** After the last pair, before the facts. */
  finish?(): Promise<void>
  readonly facts?: () => Readonly<Record<string, string | number>>
  close(): Promise<void>
}

export interface BenchResult {
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
/** Of all pairs; with fewer the result is noisy. */
const PAIRS_SHARE_MINIMUM = 0.7
const FLOOR_RATIO_MAXIMUM = 1.5

/** Runs a benchmark: each side for about `seconds` a pair. */
export async function measure(bench: Bench, seconds: number, round: Round = 'full'): Promise<BenchResult> {
  const world = await bench.open(round)
  try {
    if (round === 'full') {
      await world.subject.run(seconds / 2)
      await world.peer.run(seconds / 2)
    }
    const kept: Pair[] = []
    const pairs = round === 'short' ? 1 : (bench.pairs ?? PAIRS)
    for (let pair = 0; pair < pairs; pair += 1) {
      const before = spinFloor()
      const figures = await runPair(world, seconds, pair % 2 === 0)
      const after = spinFloor()
      if (
        round === 'short' ||
        bench.isCount === true ||
        Math.max(before, after) / Math.min(before, after) <= FLOOR_RATIO_MAXIMUM
      )
        kept.push(figures)
    }
    await world.finish?.()
    const ratios = kept.map(({ subject, peer }) => subject / peer).sort((a, b) => a - b)
    return {
      ratio: median(ratios),
      low: ratios[0] ?? Number.NaN,
      high: ratios.at(-1) ?? Number.NaN,
      subjectPerSecond: median(kept.map((pair) => pair.subject)),
      peerPerSecond: median(kept.map((pair) => pair.peer)),
      pairs: kept.length,
      isNoisy: kept.length < PAIRS_SHARE_MINIMUM * pairs,
      facts: world.facts?.() ?? {},
    }
  } finally {
    await world.close()
  }
}

/** Whether the ratio and the facts are within their limits. */
export const isReached = ({ goal, limits = {} }: Bench, { ratio, facts }: BenchResult): boolean =>
  ratio >= goal && Object.entries(limits).every(([fact, limit]) => Number(facts[fact]) <= limit)

interface Pair {
  readonly subject: number
  readonly peer: number
}

async function runPair({ subject, peer }: World, seconds: number, isSubjectFirst: boolean): Promise<Pair> {
  const first = await perSecond(isSubjectFirst ? subject : peer, seconds)
  const second = await perSecond(isSubjectFirst ? peer : subject, seconds)
  return isSubjectFirst ? { subject: first, peer: second } : { subject: second, peer: first }
}

async function perSecond(side: Side, seconds: number): Promise<number> {
  const { units, seconds: taken } = await side.run(seconds)
  return units / taken
}

/** The iterations of an empty loop in a tenth of a second: the current speed of the machine. */
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

/** Calls `work` from `clients` loops for the time, each at least once, and counts the calls. */
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
      do {
        await work(client)
        units += 1
      } while (systemClock.monotonicMilliseconds() < until)
    }),
  )
  return { units, seconds: (systemClock.monotonicMilliseconds() - started) / 1000 }
}

/** The value that the given share of the others does not exceed. */
export const percentile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN

/** Repeats the work until the time is over, at least once; each repetition does `units`. */
export async function repeat(
  units: number,
  seconds: number,
  work: () => Promise<void>,
): Promise<{ readonly units: number; readonly seconds: number }> {
  const done = await closedLoop(1, seconds, work)
  return { units: done.units * units, seconds: done.seconds }
}
