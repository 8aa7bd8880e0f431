import { simulatedVolumes } from '../../../agents/node/drivers/storage/simulated.ts'
import { volumeStoreContract } from './volume-store-contract.ts'

volumeStoreContract(async () => {
  const held = new Map()
  return {
    open: async () => simulatedVolumes(held),
    template: { name: 'debian-13', version: '1', boot: { kernel: '/k', initialRamdisk: '/i', commandLine: '' }, disk: '/d' },
    close: async () => {},
  }
})
