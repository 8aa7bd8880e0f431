import { describeSeeds } from './seeds.ts'

describeSeeds(151, 50)
