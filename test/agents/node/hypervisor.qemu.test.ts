import { expect, it } from 'vitest'
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
