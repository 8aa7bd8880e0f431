/** Leaves out files of tiers on request for which a limited time does not suffice. The time of a file is what it took
 *  when it was last green; what the machine really takes is compared with that while the tiers run. */
import type { Choice } from './record.ts'

const MILLISECONDS_PER_SECOND = 1000
/** For a file whose time is not known. */
const UNKNOWN_SECONDS = 60
/** Start of a tier, and what its files share. */
const TIER_SECONDS = 10
const NO_TIME = 'the time does not suffice for it'

/** A tier that has not begun. */
interface Waiting {
  readonly tier: {
    /** Files at the same time. */
    readonly workersMaximum: number
  }
  /** Undefined when all files run: they have no estimate. */
  readonly choices: readonly Choice[] | undefined
}

/** How long the files of a tier take, in seconds. */
function estimate({ tier, choices = [] }: Waiting, runs = (choice: Choice) => choice.isRun): number {
  const times = choices.filter(runs).map(({ seconds }) => seconds ?? UNKNOWN_SECONDS)
  if (times.length === 0) return 0
  const sum = times.reduce((total, seconds) => total + seconds, 0)
  return TIER_SECONDS + Math.max(...times, sum / tier.workersMaximum)
}

/** The tiers with as many files as the time suffices for, in the order of their turns. */
export function fit<W extends Waiting>(tiers: readonly W[], seconds: number): readonly W[] {
  const running = new Set<Choice>()
  const total = () => tiers.reduce((sum, waiting) => sum + estimate(waiting, (choice) => running.has(choice)), 0)
  const candidates = tiers.flatMap(({ choices = [] }) => choices.filter(({ isRun }) => isRun))
  for (const choice of candidates.toSorted((a, b) => a.turn.localeCompare(b.turn))) {
    running.add(choice)
    if (total() > seconds) running.delete(choice)
  }
  const judge = (choice: Choice): Choice =>
    !choice.isRun || running.has(choice) ? choice : { ...choice, isRun: false, reason: NO_TIME }
  return tiers.map((waiting) => ({ ...waiting, choices: waiting.choices?.map(judge) }))
}

/** The time of a run. */
export class Room {
  readonly #endsAt: number
  readonly #now: () => number
  #estimatedSeconds = 0
  #spentSeconds = 0

  /** From now on, by a clock of milliseconds. */
  constructor(seconds: number, now: () => number) {
    this.#now = now
    this.#endsAt = now() + seconds * MILLISECONDS_PER_SECOND
  }

  /** The tiers that have not begun, with the files for which the time that is left suffices at the pace so far. */
  fit<W extends Waiting>(tiers: readonly W[]): readonly W[] {
    const pace = this.#estimatedSeconds === 0 ? 1 : Math.max(1, this.#spentSeconds / this.#estimatedSeconds)
    return fit(tiers, (this.#endsAt - this.#now()) / MILLISECONDS_PER_SECOND / pace)
  }

  /** Measures what a tier takes. */
  async measure<T>(waiting: Waiting, work: () => Promise<T>): Promise<T> {
    const startedAt = this.#now()
    const result = await work()
    this.#spentSeconds += (this.#now() - startedAt) / MILLISECONDS_PER_SECOND
    this.#estimatedSeconds += estimate(waiting)
    return result
  }
}
