/** The seeds that `npm test` runs, chosen by `choose.ts` because together they reach what many more do. */
import chosen from './chosen.json' with { type: 'json' }

export interface ChosenSeed {
  readonly seed: number
  /** Whether hosts are lost. */
  readonly hasLosses: boolean
  /** What it reached, when it was chosen, that none of those before it did. */
  readonly adds: readonly string[]
}

export const CHOSEN_SEEDS: readonly ChosenSeed[] = chosen
