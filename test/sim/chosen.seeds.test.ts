/** The chosen seeds that `npm test` has no time for. */
import { OTHER_CHOSEN_SEEDS } from './chosen.ts'
import { testChosenSeeds } from './chosen-worlds.ts'

testChosenSeeds(OTHER_CHOSEN_SEEDS)
