import { newSimulatedHost } from '../../../agents/node/drivers/hypervisor/simulated.ts'
import { Scheduler, SimulatedProcess } from '../../sim/scheduler.ts'
import { hypervisorContract } from './hypervisor-contract.ts'

hypervisorContract(async () => {
  const scheduler = new Scheduler(1)
  const machine = new SimulatedProcess('host', scheduler)
  machine.begin()
  const host = newSimulatedHost({ clock: machine.clock(), random: scheduler.random })
  const until = async (isTrue: () => boolean) => {
    if (!(await scheduler.runUntil(scheduler.nowMilliseconds + 60_000, isTrue))) throw new Error('did not come true within a virtual minute')
  }
  return {
    attach: async () => host.attach(),
    definition: async (name, incarnation) => ({
      name, uid: 'uid-1', incarnation, hostname: 'web-1', cores: 1, memoryMebibytes: 128, boot: { kernel: '/k', initialRamdisk: '/i', commandLine: '' },
      disks: [{ path: '/d', serial: 'd' }], interfaces: [], forwardedPorts: [], seed: Buffer.alloc(0),
    }),
    killGuest: async (name) => host.crashGuest(name),
    until,
    async settled(promise) {
      let isOver = false
      const end = () => void (isOver = true)
      promise.then(end, end)
      await until(() => isOver)
      return promise
    },
    close: async () => {},
  }
})
