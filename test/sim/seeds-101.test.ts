import { describeSeeds } from './seeds.ts'

describeSeeds(101, 20)
