import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect, it } from 'vitest'
import { gateSocket } from '../../../agents/node/drivers/network/user-mode.ts'
import { bootsTrial } from '../../../agents/node/drivers/hypervisor/qemu-probe.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { eventually } from '../../eventually.ts'
import { hypervisorContract } from './hypervisor-contract.ts'
import { openQemuMachine } from './qemu-machine.ts'

hypervisorContract(async () => {
  const { host, definition, ...machine } = await openQemuMachine()
  return { ...machine, ...host(0), definition: (name, incarnation) => definition(name, incarnation, 'boot') }
})

it('believes in an accelerator that boots a marker, and in no other', async () => {
  expect(await bootsTrial('tcg', systemClock)).toBe(true)
})

it('has a disk for as long as its process has the file open, with any report of the device', async () => {
  const { host, definition, disk, close } = await openQemuMachine()
  const hypervisor = await host(0).attach()
  await hypervisor.start(await definition('a', 1, 'own-0'))
  const { path, ...data } = await disk()
  await hypervisor.plugDisk('a', { path, ...data })
  const { execute, nameOf } = hypervisor.monitorOf('a') ?? {}
  const has = async () => (await hypervisor.inspect('a'))?.disks.includes(path)
  const leak = { driver: 'file', 'node-name': 'left', filename: nameOf?.(path), 'read-only': true, locking: 'off' }
  await execute?.('blockdev-add', leak)
  await hypervisor.unplugDisk('a', path, true)
  expect(await has()).toBe(true)
  await execute?.('blockdev-del', { 'node-name': 'left' })
  await hypervisor.unplugDisk('a', path, true)
  expect(await has()).toBe(false)
  await hypervisor.forget('a')
  await hypervisor.close()
  await close()
})

it('reports a disk of a guest only where its device refers to that very file', async () => {
  const { host, definition, disk, volumes, close } = await openQemuMachine()
  let hypervisor = await host(0).attach()
  await hypervisor.start(await definition('a', 1, 'own-0'))
  const data = await disk()
  await volumes.create({ name: 'other', sizeGibibytes: 1 })
  const other = { ...data, path: await volumes.pathOf('other'), serial: 'other' }
  const text = () => hypervisor.console('a').tail().toString()
  const seen = async (serial: string) => {
    await eventually(`the disk ${serial} in the guest`, () => {
      hypervisor.console('a').write(Buffer.from('cat /sys/block/vd*/serial; echo\n'))
      return text().slice(-200).includes(serial) || undefined
    })
  }
  await eventually('the guest', () => text().includes('root@web-1') || undefined)

  // An agent died between the file and the device: what is open in the slot is not what the guest gets.
  const { execute, give } = hypervisor.monitorOf('a') ?? {}
  const node = { driver: 'file', 'node-name': 'file1', filename: await give?.(other.path), locking: 'on' }
  await execute?.('blockdev-add', node)
  await hypervisor.plugDisk('a', data)
  await seen('data')
  const files = JSON.stringify(await execute?.('query-named-block-nodes', { flat: true }))
  expect(files).not.toContain('volumes/other')
  await expect(hypervisor.plugDisk('a', other)).rejects.toThrow('another disk')
  expect((await hypervisor.inspect('a'))?.disks).not.toContain(other.path)

  // The next agent takes back what the last one left.
  await hypervisor.unplugDisk('a', data.path, true)
  await eventually('its release', async () => !(await hypervisor.inspect('a'))?.cutOffSlots || undefined)
  await execute?.('blockdev-add', { ...node, filename: await give?.(data.path) })
  await hypervisor.close()
  hypervisor = await host(0).attach()
  expect((await hypervisor.inspect('a'))?.disks).not.toContain(data.path)
  await hypervisor.plugDisk('a', other)
  await seen('other')
  await hypervisor.forget('a')
  await hypervisor.close()
  await close()
})

it('has a gate only once a guest needs it', async () => {
  const { host, definition, close } = await openQemuMachine()
  const { attach, guestFolder } = host(0)
  const hypervisor = await attach()
  const hasGate = () =>
    stat(gateSocket(dirname(guestFolder('a')))).then(
      () => true,
      () => false,
    )
  expect(await hypervisor.list()).toEqual([])
  expect(await hasGate()).toBe(false)
  await hypervisor.start(await definition('a', 1, 'own-0'))
  expect(await hasGate()).toBe(true)
  await hypervisor.forget('a')
  await hypervisor.close()
  await close()
})
