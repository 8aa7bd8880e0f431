/** The hardware of simulated hosts. */
import { ledgerInMemory, type Ledger } from '../../agents/node/ledger.ts'
import {
  newSimulatedHost,
  type SimulatedHost,
  type SimulatedHostOptions,
} from '../../agents/node/drivers/hypervisor/simulated.ts'
import type { HeldImage } from '../../agents/node/images/image-store.ts'
import type { HeldVolume } from '../../agents/node/drivers/storage/volume-store.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import type { Scheduler } from './scheduler.ts'

/** Survives its agent, and loses its guests when it restarts. */
export interface Host {
  readonly name: string
  readonly machine: SimulatedHost
  readonly volumes: Map<string, HeldVolume>
  readonly images: Map<string, HeldImage>
  ledger: Ledger
  bootId: string
}

export function newHost(
  name: string,
  scheduler: Scheduler,
  options: SimulatedHostOptions & { readonly random: Random },
): Host {
  return {
    name,
    machine: noted(newSimulatedHost({ ...options, name }), scheduler),
    volumes: new Map(),
    images: new Map(),
    ledger: ledgerInMemory(),
    bootId: newUuid(options.random),
  }
}

/** The same host, whose misfortunes are noted. */
const noted = (machine: SimulatedHost, scheduler: Scheduler): SimulatedHost => ({
  ...machine,
  crashGuest(name) {
    scheduler.note('guest crashes')
    machine.crashGuest(name)
  },
  powerOffGuest(name) {
    scheduler.note('guest powers off')
    machine.powerOffGuest(name)
  },
  hangGuest(name) {
    scheduler.note('guest hangs')
    machine.hangGuest(name)
  },
  keepGuestBusy(name, neededDowntimeMilliseconds) {
    if (neededDowntimeMilliseconds > 0) scheduler.note('guest is busy')
    machine.keepGuestBusy(name, neededDowntimeMilliseconds)
  },
  failNextStart(reason) {
    if (reason !== undefined) scheduler.note('guest will not start')
    machine.failNextStart(reason)
  },
})
