import { shortRounds } from './short-rounds.ts'

await shortRounds('browser')
