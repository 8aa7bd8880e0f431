import { describeSeeds } from './seeds.ts'

describeSeeds(11, 10, { hasLosses: true })
