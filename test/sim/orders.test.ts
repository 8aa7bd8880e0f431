/** The checkers of what hosts do without an order find what they are there for. */
import { beforeEach, expect, it } from 'vitest'
import type { Hypervisor } from '../../agents/node/drivers/hypervisor/hypervisor.ts'
import { simulatedVolumes } from '../../agents/node/drivers/storage/simulated.ts'
import type { VolumeStore } from '../../agents/node/drivers/storage/volume-store.ts'
import type { KubeObject } from '../../embedded/kubernetes/core/object.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import { Instance, nodeNamespace, Volume } from '../../resources/instance/index.ts'
import { instanceSpec } from '../agents/node/instance-spec.ts'
import { type Disks, newDisks } from './disks.ts'
import { type Host, newHost } from './hosts.ts'
import { type Orders, watchOrders } from './orders.ts'
import { Scheduler, SimulatedProcess } from './scheduler.ts'

let scheduler: Scheduler
let host: Host
let disks: Disks
let orders: Orders
let hypervisor: Hypervisor
let volumes: VolumeStore

const settled = async <T>(promise: Promise<T>): Promise<T> => {
  let isOver = false
  const end = () => void (isOver = true)
  promise.then(end, end)
  await scheduler.runUntil(scheduler.nowMilliseconds + 60_000, () => isOver)
  return promise
}
const write = (kind: typeof Instance | typeof Volume, name: string, metadata: object, spec: object) =>
  orders.storage.append({
    revision: 1,
    storageKey: `${kind.group}/${kind.plural}`,
    key: `${nodeNamespace('a1')}/${name}`,
    // what the watch reads of it
    object: { apiVersion: '', kind: kind.kind, metadata: { name, ...metadata }, spec } as unknown as KubeObject,
  })
const look = () => [...disks.write([host]), ...orders.look([host])]

beforeEach(async () => {
  scheduler = new Scheduler(1)
  const world = new SimulatedProcess('world', scheduler)
  world.begin()
  host = newHost('a1', scheduler, { clock: world.clock(), random: scheduler.random })
  disks = newDisks()
  orders = watchOrders(memoryStorage(), () => disks)
  hypervisor = orders.hypervisor(host, host.machine.attach())
  volumes = orders.volumes(host, disks.store('a1', simulatedVolumes(host.volumes)))
  await volumes.create({ name: 'boot', sizeGibibytes: 1 })
  const path = await volumes.pathOf('boot')
  await settled(
    hypervisor.start({
      name: 'guest',
      uid: 'u',
      incarnation: 1,
      hostname: 'h',
      cores: 1,
      memoryMebibytes: 128,
      boot: undefined,
      disks: [{ path, serial: 'boot' }],
      interfaces: [],
      forwardedPorts: [],
      seed: Buffer.alloc(0),
    }),
  )
  expect(look()).toEqual([])
})

it('a guest that is ended because no object names it', async () => {
  await settled(hypervisor.forget('guest'))
  expect(orders.violations()).toEqual(['guest guest on a1 is ended without an order'])
})

it('and not one that its own object ends', async () => {
  await write(Instance, 'guest', { uid: 'u' }, instanceSpec({ power: 'stopped' }))
  await settled(hypervisor.destroy('guest'))
  expect(orders.violations()).toEqual([])
})

it('nor one that another object of the name ends', async () => {
  await write(Instance, 'guest', { uid: 'another' }, instanceSpec({ power: 'stopped' }))
  await settled(hypervisor.destroy('guest'))
  expect(orders.violations()).toEqual(['guest guest on a1 is ended without an order'])
})

it('a disk that goes, and a blank one in its place', async () => {
  host.machine.crashGuest('guest')
  await volumes.remove('boot')
  expect(look()).toEqual([
    'disk boot on a1 is removed without an order',
    'what was written last to disk boot is nowhere',
  ])
  await volumes.create({ name: 'boot', sizeGibibytes: 1 })
  expect(orders.violations()).toContain('disk boot is made a second time on a1, and what it held is nowhere')
})

it('and not one whose deletion was accepted', async () => {
  host.machine.crashGuest('guest')
  await write(Volume, 'boot', { uid: 'boot', deletionTimestamp: '2030-01-01T00:00:00Z' }, {})
  await volumes.remove('boot')
  expect(look()).toEqual([])
})
