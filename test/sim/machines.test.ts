/** What watches machines in simulated worlds finds what is wrong; the worlds are in `balancers.seeds.test.ts`. */
import { expect, it } from 'vitest'
import type { ResourceType } from '../../kit/kube/object.ts'
import { Edge } from '../../resources/edge/index.ts'
import { LoadBalancer } from '../../resources/load-balancer/index.ts'
import { areMachinesQuiet, watchMachines } from './machines.ts'

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

it.each([
  ['a load balancer that is being made', LoadBalancer, { isMade: false, isHealthy: false }, true],
  ['a load balancer that is whole', LoadBalancer, { isMade: true, isHealthy: true }, true],
  ['a load balancer whose guest hangs', LoadBalancer, { isMade: true, isHealthy: false }, false],
  ['an edge that is whole', Edge, { state: 'running', machines: [{ isHealthy: true }] }, true],
  ['an edge whose guest hangs', Edge, { state: 'running', machines: [{ isHealthy: false }] }, false],
] as const)('says of %s whether it is at rest', async (_what, kind, status, isQuiet) => {
  const list = async (type: ResourceType) => ({ items: type === kind ? [{ metadata: {}, spec: {}, status }] : [] })
  expect(await areMachinesQuiet({ admin: { list } as never, guests: {} as never })).toBe(isQuiet)
})
