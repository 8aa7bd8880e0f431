import { shortRounds } from './short-rounds.ts'

await shortRounds('e2e')
