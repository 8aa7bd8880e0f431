/** What watches machines in simulated worlds finds what is wrong; the worlds are in `balancers.seeds.test.ts`. */
import { expect, it } from 'vitest'
import { watchMachines } from './machines.ts'

it('finds a guest that runs what was made for another', () => {
  const guest = (machine: string) => ({ name: 'own', configuration: { machine, generation: 1, fingerprint: 'x' } })
  const hosts = ['own', 'other'].map((machine, index) => ({
    name: `h${index}`,
    machine: { running: () => [guest(machine)] },
  }))
  expect(watchMachines({ hosts: hosts as never, guests: undefined })).toEqual([
    'guest own on h1 runs the configuration of other',
  ])
})
