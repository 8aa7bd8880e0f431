import { describeSeeds } from './seeds.ts'

describeSeeds(21, 20)
