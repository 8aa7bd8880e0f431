import { describeSeeds } from './seeds.ts'

describeSeeds(121, 20)
