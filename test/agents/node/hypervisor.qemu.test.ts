import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect, it } from 'vitest'
import { gateSocket } from '../../../agents/node/drivers/network/user-mode.ts'
import { bootsTrial } from '../../../agents/node/drivers/hypervisor/qemu-probe.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { hypervisorContract } from './hypervisor-contract.ts'
import { openQemuMachine } from './qemu-machine.ts'

hypervisorContract(async () => {
  const { host, definition, ...machine } = await openQemuMachine()
  return { ...machine, ...host(0), definition: (name, incarnation) => definition(name, incarnation, 'boot') }
})

it('believes in an accelerator that boots a marker, and in no other', async () => {
  expect(await bootsTrial('tcg', systemClock)).toBe(true)
})

it('has a disk for as long as its process has the file open, whatever is said of the device', async () => {
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
