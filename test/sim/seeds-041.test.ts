import { describeSeeds } from './seeds.ts'

describeSeeds(41, 20)
