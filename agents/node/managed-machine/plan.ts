/** What is asked of the guest of a managed machine, and when: pure. */
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { ManagedMachineSpec, ManagedMachineStatus } from '../../../resources/managed-machine/index.ts'

export type MachineObject = KubeObject<ManagedMachineSpec, ManagedMachineStatus>

export interface ObservedMachine {
  /** The guest runs on this host. */
  readonly isRunning: boolean
  /** Until it is asked again: 0 when that is due. */
  readonly dueInSeconds: number
}

/** While it does not run what it shall. */
export const HURRY_SECONDS = 2
export const POLL_SECONDS = 10
/** A guest that is so slow that answering is work has better things to do. */
const REST_BY_ANSWER = 3

/** Until it is asked again, after an answer that took so long. */
export const restAfter = (seconds: number, isHealthy: boolean): number =>
  isHealthy ? POLL_SECONDS : Math.min(POLL_SECONDS, Math.max(HURRY_SECONDS, seconds * REST_BY_ANSWER))

/** The guest runs what its host is to deliver. */
export const runsAsWanted = ({ spec: { configuration } }: Pick<MachineObject, 'spec'>, running: Running): boolean =>
  configuration !== undefined &&
  running?.generation === configuration.generation &&
  running.fingerprint === configuration.fingerprint

type Running = ManagedMachineStatus['running']

/** Guards in order: deleting, not here, due, waiting. */
export function planMachine(machine: MachineObject, { isRunning, dueInSeconds }: ObservedMachine): readonly Action[] {
  const { metadata, status } = machine
  if (metadata.deletionTimestamp !== undefined)
    return status?.isRemoved === true ? [] : [judged(false, 'It is on its way out.', { isRemoved: true })]
  if (!isRunning) return [judged(false, 'Its guest does not run on this host.')]
  const wait: Action = {
    do: 'wait',
    seconds: Math.max(dueInSeconds, HURRY_SECONDS),
    for: 'its guest to be asked again',
  }
  const isTold = runsAsWanted(machine, status?.running)
  if (dueInSeconds === 0) return [{ do: 'effect', name: isTold ? 'ask' : 'deliver', input: {} }, wait]
  return [wait]
}

/** The status with its condition. */
export const judged = (isHealthy: boolean, detail: string, more: Partial<ManagedMachineStatus> = {}): Judged => ({
  do: 'status',
  status: { isHealthy, detail, ...more },
  conditions: [
    {
      type: 'Ready',
      status: isHealthy ? 'True' : 'False',
      reason: isHealthy ? 'Running' : 'Unhealthy',
      message: detail,
    },
  ],
})

type Judged = Extract<Action, { do: 'status' }>
