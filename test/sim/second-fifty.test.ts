import { describeSeeds } from './seeds.ts'

describeSeeds(51, 50)
