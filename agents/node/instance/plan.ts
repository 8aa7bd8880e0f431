/** What to do for one Instance: pure. The agent has no choices of its own: spec, ledger and guest decide.
 *  Always: an incarnation is started at most once; a guest is never started before the one before it is gone; an older spec than the one
 *  acted on changes nothing; the finalizer goes when nothing of the guest is left on the host. */
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { InstanceSpec, InstanceStatus } from '../../../resources/instance.ts'
import type { Guest, HypervisorKind } from '../drivers/hypervisor/hypervisor.ts'
import type { ImageState } from '../images/template-store.ts'
import type { LedgerEntry } from '../ledger.ts'

export type InstanceObject = KubeObject<InstanceSpec, InstanceStatus>

export interface InstanceSeen {
  readonly guest: Guest | undefined
  readonly entry: LedgerEntry | undefined
  /** Names of disks that are not on the host yet. */
  readonly missingVolumes: readonly string[]
  readonly image: ImageState
  readonly hypervisor: HypervisorKind
}

export type StopRequest = NonNullable<InstanceSpec['stop']>
export type EndReason = NonNullable<LedgerEntry['ended']>['reason']

/** The effects that a plan may ask for, with their input. */
export interface InstanceEffects {
  readonly accept: { readonly generation: number; readonly incarnation: number }
  readonly prepare: Record<string, never>
  readonly start: { readonly incarnation: number }
  readonly askToStop: { readonly id: string }
  readonly giveUpStop: { readonly id: string }
  readonly noteStopped: { readonly id: string }
  readonly end: { readonly reason: EndReason; readonly stopId?: string }
  readonly discard: Record<string, never>
  readonly forget: Record<string, never>
}

const effect = <Name extends keyof InstanceEffects>(name: Name, input: InstanceEffects[Name]): Action => ({ do: 'effect', name, input })
const wait = (seconds: number, what: string): Action => ({ do: 'wait', seconds, for: what })
/** The effect changed what there is to see. */
const again: Action = { do: 'wait', seconds: 0, for: 'the next look' }

/** How often the power button is pressed while a guest does not stop: one that is still booting has not heard the first. */
export const POWER_BUTTON_SECONDS = 5
const STALE_SECONDS = 60
const MISSING_SECONDS = 30

export function planInstance(instance: InstanceObject, seen: InstanceSeen, now: Date): Action[] {
  const { uid = '', generation = 0, deletionTimestamp } = instance.metadata
  const { spec } = instance
  if (deletionTimestamp !== undefined) return [effect('forget', {}), { do: 'finalized' }]

  const entry = seen.entry?.uid === uid ? seen.entry : { uid, generation: 0, incarnation: 0 }
  if (generation < entry.generation) return [wait(STALE_SECONDS, 'a spec as new as the one that was acted on')]
  if (seen.guest !== undefined && (seen.guest.uid !== uid || seen.guest.incarnation < entry.incarnation)) return [effect('discard', {}), again]
  const incarnation = Math.max(entry.incarnation, seen.guest?.incarnation ?? 0)
  if (seen.entry?.uid !== uid || generation > entry.generation || incarnation > entry.incarnation) return [effect('accept', { generation, incarnation }), again]

  const isEndWanted = spec.power === 'stopped' || spec.incarnation > incarnation
  if (seen.guest?.state === 'running') return isEndWanted ? planStop(spec, seen, entry, now) : [statusOf('running', seen, entry)]
  if (seen.guest !== undefined || (incarnation > 0 && entry.ended === undefined)) return [planEnded(spec, seen.guest, entry, isEndWanted), again]
  if (spec.power === 'running' && spec.incarnation > incarnation) return planStart(spec, seen, entry)
  if (spec.power === 'stopped' && spec.stop !== undefined && entry.stop?.id !== spec.stop.id) return [effect('noteStopped', { id: spec.stop.id }), again]
  return [entry.ended?.detail === undefined ? statusOf('stopped', seen, entry) : statusOf('error', seen, entry, entry.ended.detail)]
}

function planStop(spec: InstanceSpec, seen: InstanceSeen, entry: LedgerEntry, now: Date): Action[] {
  const stop = spec.stop ?? { id: `incarnation-${entry.incarnation}`, type: 'soft', timeoutSeconds: 60, timeoutAction: 'hard' }
  const request = entry.stop?.id === stop.id ? entry.stop : undefined
  if (request?.outcome === 'timed_out') return [statusOf('running', seen, entry, 'the guest did not stop in time')]
  if (stop.type === 'hard') return [effect('end', { reason: 'requested', stopId: stop.id }), again]
  if (request === undefined) return [effect('askToStop', { id: stop.id }), again]
  const remainingSeconds = stop.timeoutSeconds - (now.getTime() - Date.parse(request.since)) / 1000
  if (remainingSeconds > 0) return [effect('askToStop', { id: stop.id }), statusOf('stopping', seen, entry), wait(Math.min(POWER_BUTTON_SECONDS, remainingSeconds), 'the guest to stop')]
  return stop.timeoutAction === 'hard' ? [effect('end', { reason: 'requested', stopId: stop.id }), again] : [effect('giveUpStop', { id: stop.id }), again]
}

/** The guest is no more, or it was begun and never seen. */
function planEnded(spec: InstanceSpec, guest: Guest | undefined, entry: LedgerEntry, isEndWanted: boolean): Action {
  const isAsked = isEndWanted && entry.stop?.outcome !== 'timed_out'
  const reason = isAsked ? 'requested' : guest?.state === 'off' ? 'guest_shutdown' : 'crashed'
  return effect('end', { reason, ...(isAsked && spec.stop !== undefined ? { stopId: spec.stop.id } : {}) })
}

function planStart(spec: InstanceSpec, seen: InstanceSeen, entry: LedgerEntry): Action[] {
  if (seen.missingVolumes.length > 0) return [statusOf('waiting', seen, entry, `waiting for volume ${seen.missingVolumes[0]}`), wait(MISSING_SECONDS, 'volumes')]
  if (seen.image.is === 'unavailable') return [statusOf('error', seen, entry, seen.image.reason), effect('prepare', {}), wait(MISSING_SECONDS, 'the template')]
  if (seen.image.is === 'absent') return [statusOf('waiting', seen, entry, `template ${spec.template} is being prepared`), effect('prepare', {}), wait(MISSING_SECONDS, 'the template')]
  return [effect('start', { incarnation: spec.incarnation }), again]
}

function statusOf(state: InstanceStatus['state'], seen: InstanceSeen, entry: LedgerEntry, detail?: string): Action {
  const status: { [Field in keyof Required<InstanceStatus>]?: InstanceStatus[Field] | undefined } = {
    state, detail: detail?.slice(0, DETAIL_CHARACTERS_MAXIMUM), incarnation: entry.incarnation,
    startedAt: entry.startedAt, endedAt: seen.guest === undefined ? entry.ended?.at : undefined, endReason: seen.guest === undefined ? entry.ended?.reason : undefined,
    stop: entry.stop?.outcome === undefined ? undefined : { id: entry.stop.id, outcome: entry.stop.outcome },
    hypervisor: seen.guest === undefined ? undefined : seen.hypervisor,
    forwards: seen.guest === undefined ? undefined : [...seen.guest.forwards],
  }
  return { do: 'status', status }
}

/** As the schema of the status has it. */
const DETAIL_CHARACTERS_MAXIMUM = 1024
