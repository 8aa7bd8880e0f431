/** Random lives of resources through months, for one seed: the long file has others. */
import { testLives } from './metered-lives.ts'

testLives([1])
