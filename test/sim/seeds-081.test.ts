import { describeSeeds } from './seeds.ts'

describeSeeds(81, 20)
