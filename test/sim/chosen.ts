/** The seeds that every landing runs, chosen by `choose.ts` because together they reach what many more do. */
import chosen from './chosen.json' with { type: 'json' }

export interface ChosenSeed {
  readonly seed: number
  /** Whether hosts are lost. */
  readonly hasLosses: boolean
  /** What it reached, when it was chosen, that none of those before it did. */
  readonly adds: readonly string[]
}

const CHOSEN_SEEDS: readonly ChosenSeed[] = chosen.toSorted((a, b) => b.adds.length - a.adds.length)
const FIRST = 3
/** Those that add most, in `npm test`. */
export const FIRST_CHOSEN_SEEDS = CHOSEN_SEEDS.slice(0, FIRST)
/** The others, in the tier `seeds`. */
export const OTHER_CHOSEN_SEEDS = CHOSEN_SEEDS.slice(FIRST)
