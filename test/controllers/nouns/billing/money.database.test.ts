/** Money under crashes, for one seed: the long file has another. */
import { testMonths } from './money-months.ts'

testMonths([1])
