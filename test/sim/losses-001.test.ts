import { describeSeeds } from './seeds.ts'

describeSeeds(1, 10, { hasLosses: true })
