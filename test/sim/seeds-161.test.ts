import { describeSeeds } from './seeds.ts'

describeSeeds(161, 20)
