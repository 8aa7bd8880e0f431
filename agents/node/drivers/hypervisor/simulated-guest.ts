/** A guest of a simulated host: its saved record and its current state. */
import type { Guest, GuestIdentity, SendRequest, Transfer } from './hypervisor.ts'
import type { SimulatedMemory } from './simulated-network.ts'

export interface SimulatedGuestRecord extends GuestIdentity {
  readonly hostname: string
  readonly startedAt: string
  readonly disks: readonly string[]
  /** Slots of disks, by path; absent for those that it started with. */
  readonly slots?: Readonly<Record<string, number>> | undefined
  /** Slots whose devices it has yet to release. */
  readonly cutOffSlots?: readonly number[] | undefined
  /** Ports of interfaces that it was asked to release. */
  readonly leavingInterfaces?: readonly string[] | undefined
  /** Names of their ports; absent in records of earlier versions. */
  readonly interfaces?: readonly string[] | undefined
  readonly state: Guest['state']
  /** Created at its boot and kept while it migrates: two running guests with one execution id are two copies. Empty
   *  until the guest has arrived. */
  readonly executionId: string
  readonly transfer?: Transfer | undefined
  /** The last configuration that a managed machine received. */
  readonly configuration?: MachineConfiguration | undefined
}

export interface MachineConfiguration {
  readonly machine: string
  readonly generation: number
  readonly fingerprint: string
  /** Of a database only. */
  readonly passwordGeneration?: number
  /** Since when it has an archive; of a database only. */
  readonly archivedAt?: string
}

export interface SimulatedGuest extends SimulatedMemory {
  record: SimulatedGuestRecord
  executionId: string
  isBooted: boolean
  isHung: boolean
  typed: string
  neededDowntimeMilliseconds: number
  /** The attempt in progress. */
  sending: SendRequest | undefined
  isPaused: boolean
  /** A full disk has paused it. */
  isDiskFull: boolean
  /** Its writes find space. */
  hasRoom: boolean
  isHandingOver: boolean
  /** The listener for its memory. */
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
  isDiskFull: false,
  hasRoom: true,
  isHandingOver: false,
  listening: undefined,
  arrived: undefined,
})
