/** Migration of simulated guests, in the same order as with QEMU. The memory is copied in passes while the guest runs.
 *  Then the guest is paused until an agent orders the cutover. Then the sender has written everything. The receiver has
 *  it a moment later, or never when the network is cut just then. */
import type { ReceiveRequest, SendRequest } from './hypervisor.ts'
import type { SimulatedGuest } from './simulated-guest.ts'
import { newSimulatedReception } from './simulated-reception.ts'
import { newSimulatedSending } from './simulated-sending.ts'
import type { SimulatedMigrationOptions } from './simulated-transfer.ts'

export interface SimulatedMigrations {
  /** The guest waits for its memory. */
  receive(guest: SimulatedGuest, reception: ReceiveRequest): void
  send(guest: SimulatedGuest, sending: SendRequest): void
  cancel(guest: SimulatedGuest, reason: string): void
  /** An agent has attached to the guest: continues steps that waited for one. */
  continueWithAgent(guest: SimulatedGuest): void
  /** The guest's process has ended: closes its connections. */
  disconnect(guest: SimulatedGuest): void
}

export function newSimulatedMigrations(options: SimulatedMigrationOptions): SimulatedMigrations {
  const sending = newSimulatedSending(options)
  const reception = newSimulatedReception(options)
  return {
    receive: reception.begin,
    send: sending.begin,
    cancel: sending.cancel,
    continueWithAgent(guest) {
      sending.continueWithAgent(guest)
      reception.continueWithAgent(guest)
    },
    disconnect(guest) {
      reception.disconnect(guest)
      sending.disconnect(guest)
    },
  }
}
