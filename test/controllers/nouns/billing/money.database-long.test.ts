/** Money under crashes, for another seed. */
import { testMonths } from './money-months.ts'

testMonths([2])
