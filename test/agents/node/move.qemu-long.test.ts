/** What every hypervisor promises of a guest that moves, held by QEMU. */
import { moveContract } from './move-contract.ts'
import { openQemuMachine } from './qemu-machine.ts'

moveContract(async () => {
  const { host, definition, ...machine } = await openQemuMachine()
  const hostOf = (number: 0 | 1) => ({
    ...host(number),
    definition: (name: string, disk: 'shared' | 'own') =>
      definition(name, 1, disk === 'shared' ? 'boot' : `own-${number}`),
  })
  return { ...machine, hosts: [hostOf(0), hostOf(1)] }
})
