import { newSimulatedStorage, simulatedVolumes } from '../../../agents/node/drivers/storage/simulated.ts'
import type { HeldVolume } from '../../../agents/node/drivers/storage/volume-store.ts'
import { volumeStoreContract } from './volume-store-contract.ts'

volumeStoreContract(async () => {
  const storage = newSimulatedStorage('pool')
  const [disk, otherDisk] = [new Map<string, HeldVolume>(), new Map<string, HeldVolume>()]
  return {
    open: async () => simulatedVolumes(disk, { storage, host: 'alpha' }),
    openOther: async () => simulatedVolumes(otherDisk, { storage, host: 'beta' }),
    template: {
      name: 'tiny-linux',
      version: 'simulated',
      boot: { kernel: '/k', initialRamdisk: '/i', commandLine: '' },
    },
    takeFrozen: async (_path, labelOf) => void labelOf(true),
    close: async () => {},
  }
})
