import { describeSeeds } from './seeds.ts'

describeSeeds(61, 20)
