import { describeSeeds } from './seeds.ts'

describeSeeds(141, 20)
