/** Decides what to ask the guest of a managed machine, and when. Pure. */
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { ManagedMachineSpec, ManagedMachineStatus } from '../../../resources/managed-machine/index.ts'

export type MachineObject = KubeObject<ManagedMachineSpec, ManagedMachineStatus>

export interface ObservedMachine {
  /** Whether the guest runs on this host. */
  readonly isRunning: boolean
  /** Time until the next request; 0 when it is due. */
  readonly dueInSeconds: number
}

/** Interval while it does not run its configuration. */
export const HURRY_SECONDS = 2
export const POLL_SECONDS = 10
/** Pause as a multiple of the time of an answer: a guest for which answering is work needs its time for other work. */
const REST_BY_ANSWER = 3

/** Seconds until the next request, after an answer that took this many seconds. */
export const restAfter = (seconds: number, isHealthy: boolean): number =>
  isHealthy ? POLL_SECONDS : Math.min(POLL_SECONDS, Math.max(HURRY_SECONDS, seconds * REST_BY_ANSWER))

/** Whether the guest runs the configuration of the spec. */
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
export const judged = (isHealthy: boolean, detail: string, more: Partial<ManagedMachineStatus> = {}): Verdict => ({
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

type Verdict = Extract<Action, { do: 'status' }>
