/** What to do for one Volume: pure. The disk is on the host, or it is gone; nothing happens to it while a guest may
 *  have it open. */
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { VolumeSpec, VolumeStatus } from '../../../resources/instance/index.ts'
import type { HeldVolume } from '../drivers/storage/volume-store.ts'
import type { ImageState } from '../images/template-store.ts'
import { DETAIL_CHARACTERS_MAXIMUM } from '../instance/plan.ts'
import type { CopyState } from './copies.ts'

export type VolumeObject = KubeObject<VolumeSpec, VolumeStatus>

export interface ObservedVolume {
  readonly held: HeldVolume | undefined
  /** Name of a guest that may have it open. */
  readonly user: string | undefined
  /** Undefined when it does not begin as a template. */
  readonly image: ImageState | undefined
  /** Where it is served, and for which operation. */
  readonly serving?: VolumeStatus['serving']
  readonly copy?: CopyState | undefined
  /** Of its pool: whether the host has mounted it, and whether the volume lies in it. */
  readonly pool?: { readonly isMounted: boolean; readonly hasVolume: boolean } | undefined
}

export interface VolumeEffects {
  readonly create: Record<string, never>
  readonly adopt: { readonly pool: string }
  readonly copy: { readonly host: string; readonly port: number }
  readonly grow: Record<string, never>
  readonly serve: { readonly id: string }
  readonly stopServing: Record<string, never>
  readonly remove: Record<string, never>
  readonly release: Record<string, never>
  readonly prepare: Record<string, never>
}

const RETRY_SECONDS = 30
const IN_USE_SECONDS = 1

const effect = <Name extends keyof VolumeEffects>(name: Name, input: VolumeEffects[Name]): Action => ({
  do: 'effect',
  name,
  input,
})
const wait = (seconds: number, what: string): Action => ({ do: 'wait', seconds, for: what })
/** The effect changed what there is to see. */
const requeue = wait(0, 'the next look')
const waitForRelease = (user: string): Action => wait(IN_USE_SECONDS, `guest ${user} to let go`)

/** Guards in order: deleting, not here, too small, to be served, done. */
export function planVolume({ metadata, spec }: VolumeObject, observed: ObservedVolume): Action[] {
  const { held, user, serving } = observed
  if (metadata.deletionTimestamp !== undefined) {
    if (user !== undefined) return [waitForRelease(user)]
    return [effect(spec.isRetained === true ? 'release' : 'remove', {}), { do: 'finalized' }]
  }
  if (held === undefined) return planMaking(spec, observed)
  if (held.sizeGibibytes < spec.sizeGibibytes)
    return user === undefined ? [ready(held), effect('grow', {}), requeue] : [ready(held), waitForRelease(user)]
  if (spec.serve !== undefined && user !== undefined) return [ready(held), waitForRelease(user)]
  if (spec.serve !== undefined && serving?.id !== spec.serve.id)
    return [effect('serve', { id: spec.serve.id }), requeue]
  if (spec.serve === undefined && serving !== undefined) return [effect('stopServing', {}), requeue]
  return [ready(held, serving)]
}

function planMaking({ pool, source, copyFrom, origin, isRetained }: VolumeSpec, observed: ObservedVolume): Action[] {
  if (pool !== undefined) {
    if (observed.pool?.isMounted !== true)
      return [creating(`pool ${pool} is not mounted on this host`), wait(RETRY_SECONDS, 'the pool')]
    // What lies there under the name of a copy is an older one, or half of this one.
    if (observed.pool.hasVolume && source?.kind !== 'copy') return [effect('adopt', { pool }), requeue]
    // What another host made is never made a second time, empty.
    if (isRetained === true || (source === undefined && origin !== undefined))
      return [creating(`pool ${pool} does not hold it`), wait(RETRY_SECONDS, 'the pool')]
  }
  if (source?.kind === 'copy') {
    if (copyFrom === undefined || copyFrom.id !== source.name)
      return [creating('waiting for the other node to serve it')]
    const detail = observed.copy?.is === 'failed' ? observed.copy.reason : 'being copied from the other node'
    return [creating(detail), effect('copy', { host: copyFrom.host, port: copyFrom.port })]
  }
  if (source?.kind === 'template' && observed.image?.is === 'unavailable')
    return [
      { do: 'status', status: status('error', observed.image.reason) },
      effect('prepare', {}),
      wait(RETRY_SECONDS, 'the template'),
    ]
  if (source?.kind === 'template' && observed.image?.is !== 'ready')
    return [
      creating(`template ${source.name} is being prepared`),
      effect('prepare', {}),
      wait(RETRY_SECONDS, 'the template'),
    ]
  return [effect('create', {}), requeue]
}

type Status = {
  readonly [Field in keyof Omit<VolumeStatus, 'observedGeneration' | 'conditions'>]-?: VolumeStatus[Field] | undefined
}

const status = (state: VolumeStatus['state'], detail?: string): Status => ({
  state,
  detail: detail?.slice(0, DETAIL_CHARACTERS_MAXIMUM),
  sizeGibibytes: undefined,
  origin: undefined,
  serving: undefined,
})
const creating = (detail: string): Action => ({ do: 'status', status: status('creating', detail) })
const ready = ({ sizeGibibytes, source }: HeldVolume, serving?: VolumeStatus['serving']): Action => ({
  do: 'status',
  status: { ...status('ready'), sizeGibibytes, origin: source, serving },
})
