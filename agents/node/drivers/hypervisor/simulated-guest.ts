/** A guest of a simulated host: what of it is saved, and what it is doing. */
import type { Guest, GuestIdentity, SendRequest, Transfer } from './hypervisor.ts'
import type { SimulatedMemory } from './simulated-network.ts'

export interface SimulatedGuestRecord extends GuestIdentity {
  readonly hostname: string
  readonly startedAt: string
  readonly disks: readonly string[]
  /** Slots of disks, by path; absent for those that it began with. */
  readonly slots?: Readonly<Record<string, number>> | undefined
  /** Slots whose devices it has yet to release. */
  readonly cutOffSlots?: readonly number[] | undefined
  /** Those of the interfaces that it was asked for. */
  readonly leavingInterfaces?: readonly string[] | undefined
  /** Names of their ports; absent in records of earlier versions. */
  readonly interfaces?: readonly string[] | undefined
  readonly state: Guest['state']
  /** Made at its boot and kept while it migrates: two running guests with one execution id are two copies. Empty while
   *  it has not arrived. */
  readonly executionId: string
  readonly transfer?: Transfer | undefined
  /** Of a managed machine: what it was delivered last. */
  readonly configuration?: MachineConfiguration | undefined
}

export interface MachineConfiguration {
  readonly machine: string
  readonly generation: number
  readonly fingerprint: string
  /** Of a database. */
  readonly passwordGeneration?: number
}

export interface SimulatedGuest extends SimulatedMemory {
  record: SimulatedGuestRecord
  executionId: string
  isBooted: boolean
  isHung: boolean
  typed: string
  neededDowntimeMilliseconds: number
  /** The attempt that is under way. */
  sending: SendRequest | undefined
  isPaused: boolean
  isHandingOver: boolean
  /** Where it waits for its memory. */
  listening: { close(): void } | undefined
  arrived: SimulatedMemory | undefined
}

export const newSimulatedGuest = (record: SimulatedGuestRecord, isBooted = false): SimulatedGuest => ({
  record,
  executionId: record.executionId,
  isBooted,
  isHung: false,
  typed: '',
  neededDowntimeMilliseconds: 0,
  sending: undefined,
  isPaused: false,
  isHandingOver: false,
  listening: undefined,
  arrived: undefined,
})
