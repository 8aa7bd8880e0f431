/** Random lives of resources through months, for other seeds. */
import { testLives } from './metered-lives.ts'

testLives([2, 3])
