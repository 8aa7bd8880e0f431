/** The receiving host of the migration of a simulated guest: waits for its memory, and lets it continue here. */
import { numberBetween } from '../../../../kit/sys/random.ts'
import type { ReceiveRequest } from './hypervisor.ts'
import type { SimulatedGuest } from './simulated-guest.ts'
import { newTransfer, type SimulatedMigrationOptions } from './simulated-transfer.ts'

export interface SimulatedReception {
  /** The guest waits for its memory. */
  begin(guest: SimulatedGuest, reception: ReceiveRequest): void
  continueWithAgent(guest: SimulatedGuest): void
  disconnect(guest: SimulatedGuest): void
}

const ARRIVAL_MILLISECONDS = { least: 1, most: 60 }

export function newSimulatedReception({
  clock,
  random,
  network,
  host,
  guests,
  system,
  hasAgent,
}: SimulatedMigrationOptions): SimulatedReception {
  function resume(guest: SimulatedGuest): void {
    const memory = guest.arrived
    if (memory === undefined || guest.record.state !== 'receiving' || !guests.isHere(guest)) return
    guest.arrived = undefined
    Object.assign(guest, memory)
    const { transfer } = guest.record
    system.connect(guest)
    if (!memory.isBooted) system.boot(guest)
    guests.update(guest, {
      state: 'running',
      executionId: memory.executionId,
      ...(transfer === undefined
        ? {}
        : { transfer: { ...transfer, phase: 'completed', reportedAt: clock.now().toISOString() } }),
    })
  }

  return {
    begin(guest, reception) {
      const hasOwnDisks = reception.mirroredDisks.length > 0
      const listening = network.listen(host, {
        key: reception.key,
        receive(memory) {
          listening.close()
          guest.arrived = memory
          // If disks were copied, an agent must end the copy first.
          clock.after(numberBetween(random, ARRIVAL_MILLISECONDS), () => (!hasOwnDisks || hasAgent()) && resume(guest))
        },
        abort() {
          listening.close()
          const { transfer } = guest.record
          if (guests.isHere(guest) && transfer !== undefined)
            guests.update(guest, {
              state: 'gone',
              transfer: { ...transfer, phase: 'failed', detail: 'the connection broke' },
            })
        },
      })
      const { port } = listening
      guest.listening = listening
      const where = { host, port, ...(hasOwnDisks ? { diskPort: port } : {}) }
      guest.record = { ...guest.record, transfer: newTransfer('receive', reception, clock.now(), where) }
    },
    continueWithAgent: resume,
    disconnect(guest) {
      guest.listening?.close()
      guest.arrived = undefined
    },
  }
}
