import { describeSeeds } from './seeds.ts'

describeSeeds(181, 20)
