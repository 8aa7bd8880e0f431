/** Decides what to do for one Volume: create the disk on the host, or remove it. Pure. Nothing happens to the disk
 *  while a guest may have it open. */
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Action, ConditionDraft } from '../../../kit/reconcile/action.ts'
import type { VolumeSpec, VolumeStatus } from '../../../resources/instance/index.ts'
import { isNameTaken } from '../../../resources/instance/name-taken.ts'
import type { HeldSnapshot, HeldVolume } from '../drivers/storage/volume-store.ts'
import type { BytesEntry } from '../ledger.ts'
import { NAME_FREE, nameTaken } from '../name-taken.ts'
import type { HeldImage } from '../images/image-store.ts'
import type { ImageState } from '../images/template-store.ts'
import { DETAIL_CHARACTERS_MAXIMUM } from '../instance/plan.ts'
import type { CopyState } from './copies.ts'

export type VolumeObject = KubeObject<VolumeSpec, VolumeStatus>

export interface ObservedVolume {
  readonly held: HeldVolume | undefined
  /** Name of a guest that may have it open. */
  readonly user: string | undefined
  /** Undefined when it is not created from a template. */
  readonly image: ImageState | undefined
  /** Undefined when it is not created from a custom image, or the image is not on the host yet. */
  readonly customImage?: HeldImage | undefined
  /** Address and operation of its serving. */
  readonly serving?: VolumeStatus['serving']
  readonly copy?: CopyState | undefined
  /** Whether the host has a place for backups. */
  readonly hasBackups?: boolean
  /** For a volume in a pool: whether the host has mounted the pool, and whether the volume is in it. */
  readonly pool?: { readonly isMounted: boolean; readonly hasVolume: boolean } | undefined
  /** Snapshots in the disk. Not read when the spec requests none. */
  readonly snapshots?: readonly HeldSnapshot[]
  /** The host's ledger entry for a disk of this name. */
  readonly bytes?: BytesEntry | undefined
  /** The current data are on another host, regardless of the disk here. */
  readonly isSuperseded?: boolean
  /** The data here were in use, as the host recorded. */
  readonly isCurrent?: boolean
  /** Another host received the data, and this object is older than that. */
  readonly isOlderThanServing?: boolean
}

export interface VolumeEffects {
  readonly create: Record<string, never>
  readonly adopt: { readonly pool: string }
  readonly noteMade: Record<string, never>
  readonly noteCurrent: Record<string, never>
  readonly noteSnapshots: { readonly names: readonly string[] }
  readonly fill: Record<string, never>
  readonly takeSnapshot: { readonly name: string }
  readonly removeSnapshot: { readonly name: string }
  readonly copySnapshot: Record<string, never>
  readonly copy: { readonly host: string; readonly port: number }
  readonly grow: Record<string, never>
  readonly serve: { readonly id: string }
  readonly stopServing: Record<string, never>
  readonly keep: Record<string, never>
  /** Refuses the removal. */
  readonly retain: Record<string, never>
  readonly remove: Record<string, never>
  readonly release: Record<string, never>
  readonly prepare: Record<string, never>
}

const RETRY_SECONDS = 30
const IN_USE_SECONDS = 1
/** Limit of the status. */
const SNAPSHOTS_MAXIMUM = 512

const effect = <Name extends keyof VolumeEffects>(name: Name, input: VolumeEffects[Name]): Action => ({
  do: 'effect',
  name,
  input,
})
const wait = (seconds: number, what: string): Action => ({ do: 'wait', seconds, for: what })
/** The effect changed the observed state. */
const requeue = wait(0, 'the next look')
const waitForRelease = (user: string): Action => wait(IN_USE_SECONDS, `guest ${user} to release it`)

/** Guards in order: deleting, disk of another object, absent, superseded, older than a copy, unknown to the ledger, in
 *  use, too small, snapshot to take or remove, to be served, done. */
export function planVolume(volume: VolumeObject, observed: ObservedVolume): Action[] {
  const { metadata, spec, status } = volume
  const { held, user, serving, snapshots = [], bytes } = observed
  const isTaken = isOfAnother(volume, observed)
  if (metadata.deletionTimestamp !== undefined) {
    // The report is final: the object is deleted when the platform has read it.
    if (status?.isRemoved === true) return []
    if (isTaken) return [removed(status)]
    if (user !== undefined) return [waitForRelease(user)]
    if (isRemovalRefused(volume, observed))
      return [effect('retain', {}), { ...removed(status), conditions: [REMOVAL_REFUSED] }]
    return [effect(spec.isRetained === true ? 'release' : 'remove', {}), removed(status)]
  }
  if (isTaken) return [{ ...failed(TAKEN_DETAIL), conditions: [nameTaken(TAKEN_DETAIL)] }]
  if (held === undefined) return planMaking(volume, observed)
  if (observed.isSuperseded === true) return [lost('Its server was moved to another host, which has the newer data.')]
  if (observed.isOlderThanServing === true) return [lost(OLDER)]
  if (bytes?.state !== 'made' || bytes.uid !== metadata.uid) return [effect('noteMade', {}), requeue]
  if (spec.isCurrent === true && observed.isCurrent !== true) return [effect('noteCurrent', {}), requeue]
  // The order to serve it was withdrawn: the other host has no current data.
  if (bytes.served !== undefined && spec.serve === undefined && (metadata.generation ?? 0) > bytes.served.generation)
    return [effect('keep', {}), requeue]
  const known = knownSnapshots(volume, observed)
  if (known.some((name) => bytes.snapshots?.includes(name) !== true))
    return [effect('noteSnapshots', { names: known }), requeue]
  const reported = {
    ...ready(held, { serving, snapshots, lost: lostSnapshots(spec, snapshots, known) }),
    ...(isNameTaken(status?.conditions) ? { conditions: [NAME_FREE] } : {}),
  }
  if (held.sizeGibibytes < spec.sizeGibibytes) return [reported, effect('grow', {}), requeue]
  const change = nextSnapshot(spec, snapshots, known)
  if (change !== undefined) return [reported, change, requeue]
  if (spec.serve !== undefined && user !== undefined) return [reported, waitForRelease(user)]
  if (spec.serve !== undefined && serving?.id !== spec.serve.id)
    return [effect('serve', { id: spec.serve.id }), requeue]
  if (spec.serve === undefined && serving !== undefined) return [effect('stopServing', {}), requeue]
  return [reported]
}

/** Removal comes first because it frees space. A snapshot that existed is never taken again. */
function nextSnapshot(
  { snapshots: wanted = [] }: VolumeSpec,
  there: readonly HeldSnapshot[],
  known: readonly string[],
): Action | undefined {
  const isThere = (name: string) => there.some((known) => known.name === name)
  const removal = wanted.find(({ name, shall }) => shall === 'go' && isThere(name))
  if (removal !== undefined) return effect('removeSnapshot', { name: removal.name })
  const missing = wanted.find(({ name, shall }) => shall === 'be' && !isThere(name) && !known.includes(name))
  return missing && effect('takeSnapshot', { name: missing.name })
}

/** Snapshots that exist or existed in the disk, from the ledger, the report and the disk. */
const knownSnapshots = ({ status }: VolumeObject, { snapshots = [], bytes }: ObservedVolume): readonly string[] => [
  ...new Set([...(bytes?.snapshots ?? []), ...[...(status?.snapshots ?? []), ...snapshots].map(({ name }) => name)]),
]

/** Requested snapshots that existed and do not exist now. */
const lostSnapshots = (
  { snapshots: wanted = [] }: VolumeSpec,
  there: readonly HeldSnapshot[],
  known: readonly string[],
): readonly string[] =>
  wanted
    .filter(({ name, shall }) => shall === 'be' && known.includes(name) && !there.some((one) => one.name === name))
    .map(({ name }) => name)

/** Whether the disk was created for another object of the name. In a pool, the name itself shows whose disk it is. */
const isOfAnother = ({ metadata: { uid } }: VolumeObject, { held, bytes }: ObservedVolume): boolean =>
  held !== undefined && held.pool === undefined && bytes !== undefined && bytes.state !== 'removed' && bytes.uid !== uid
const TAKEN_DETAIL = 'A disk that was made for another object of this name is on the host. It stays.'

const OLDER =
  'The disk was given to another host after this state of its object was written. That host may have newer data. ' +
  'The disk stays and is not used. Find out where the newer data are first.'

const isBroughtBy = (source: VolumeSpec['source']): boolean => source?.kind === 'copy' || source?.kind === 'mirror'

/** The platform takes it for the unused target of a move, and the host knows that it was used and has given it to no
 *  other host since. Kubernetes was restored to a state before the end of the move. */
const isRemovalRefused = ({ spec }: VolumeObject, observed: ObservedVolume): boolean =>
  isBroughtBy(spec.source) &&
  spec.isRetained !== true &&
  spec.isCurrent !== true &&
  observed.isCurrent === true &&
  observed.isSuperseded !== true
const REMOVAL_REFUSED: ConditionDraft = {
  type: 'RemovalRefused',
  status: 'True',
  reason: 'InUseBefore',
  message:
    'The platform removes it as the target of a move that never ended here, but its data were in use here and may be ' +
    'the newest. They stay on the host, which reports them as unclaimed.',
}

/** Whether the disk existed before, for this object or for an earlier one of the name that it is not a copy of. */
function wasMade({ metadata: { uid }, spec: { source }, status }: VolumeObject, { bytes }: ObservedVolume): boolean {
  return (
    status?.state === 'ready' ||
    status?.state === 'lost' ||
    (bytes?.madeFor !== undefined && (bytes.madeFor === uid || !isBroughtBy(source)))
  )
}

function planMaking(volume: VolumeObject, observed: ObservedVolume): Action[] {
  const { pool, source, copyFrom, origin, isRetained } = volume.spec
  const isLost = wasMade(volume, observed)
  if (pool !== undefined) {
    if (observed.pool?.isMounted !== true)
      return [creating(`pool ${pool} is not mounted on this host`), wait(RETRY_SECONDS, 'the pool')]
    // If a copy is incomplete, data under its name in the pool are an older disk, or half of this one.
    if (observed.pool.hasVolume && (source?.kind !== 'copy' || isLost)) return [effect('adopt', { pool }), requeue]
  }
  if (isLost) return [lost(lossOf(observed))]
  if (pool !== undefined) {
    // A disk that another host created is never created a second time, empty.
    if (isRetained === true || (source === undefined && origin !== undefined))
      return [creating(`pool ${pool} does not hold it`), wait(RETRY_SECONDS, 'the pool')]
  }
  if (source?.kind === 'copy') {
    if (copyFrom === undefined || copyFrom.id !== source.name)
      return [creating('waiting for the other node to serve it')]
    const detail = observed.copy?.is === 'failed' ? observed.copy.reason : 'being copied from the other node'
    return [creating(detail), effect('copy', { host: copyFrom.host, port: copyFrom.port })]
  }
  if (source?.kind === 'backup') return planFilling(source.name, observed)
  if (source?.kind === 'snapshot' && observed.copy?.is === 'failed' && observed.copy.isFinal === true)
    return [failed(observed.copy.reason)]
  if (source?.kind === 'snapshot')
    return [
      creating(observed.copy?.is === 'failed' ? observed.copy.reason : 'being copied from a snapshot'),
      effect('copySnapshot', {}),
    ]
  if (source?.kind === 'image' && observed.customImage === undefined)
    return [creating(`image ${source.name} is being fetched`), wait(RETRY_SECONDS, 'the image')]
  if (source?.kind === 'template' && observed.image?.is === 'unavailable')
    return [
      { do: 'status', status: status('error', observed.image.reason) },
      effect('prepare', {}),
      wait(RETRY_SECONDS, 'the template'),
    ]
  if (source?.kind === 'template' && observed.image?.is !== 'ready')
    return [
      creating(preparing(source.name, observed.image)),
      effect('prepare', {}),
      wait(RETRY_SECONDS, 'the template'),
    ]
  return [effect('create', {}), requeue]
}

const lossOf = ({ bytes }: ObservedVolume): string =>
  bytes?.state === 'removed'
    ? `The disk was removed from this host at ${bytes.at}, as was asked. No other one is made in its place.`
    : 'The disk was on this host and is no longer there. No other disk is created in its place.'

function planFilling(backup: string, { copy, hasBackups }: ObservedVolume): Action[] {
  if (hasBackups !== true) return [failed('this host has no place for backups'), wait(RETRY_SECONDS, 'one')]
  if (copy?.is === 'failed' && copy.isFinal) return [failed(`backup ${backup}: ${copy.reason}`)]
  const detail = copy?.is === 'failed' ? copy.reason : (copy?.progress ?? `backup ${backup} is being read`)
  return [creating(detail), effect('fill', {})]
}

const preparing = (name: string, image: ImageState | undefined): string =>
  image?.is === 'absent' && image.step !== undefined
    ? `Template ${name} is being built: ${image.step}.`
    : `Template ${name} is being built.`

type Status = {
  readonly [Field in keyof Omit<VolumeStatus, 'observedGeneration' | 'conditions' | 'isRemoved'>]-?:
    | VolumeStatus[Field]
    | undefined
}

const removed = (reported: VolumeStatus | undefined): StatusAction => ({
  do: 'status',
  status: { state: reported?.state ?? 'creating', isRemoved: true },
})

const status = (state: VolumeStatus['state'], detail?: string): Status => ({
  state,
  detail: detail?.slice(0, DETAIL_CHARACTERS_MAXIMUM),
  sizeGibibytes: undefined,
  origin: undefined,
  serving: undefined,
  snapshots: undefined,
  lostSnapshots: undefined,
})
type StatusAction = Extract<Action, { do: 'status' }>
const failed = (detail: string): StatusAction => ({ do: 'status', status: status('error', detail) })
const lost = (detail: string): Action => ({ do: 'status', status: status('lost', detail) })
const creating = (detail: string): Action => ({ do: 'status', status: status('creating', detail) })
interface Contents {
  readonly serving: VolumeStatus['serving']
  readonly snapshots: readonly HeldSnapshot[]
  readonly lost: readonly string[]
}
const ready = ({ sizeGibibytes, source }: HeldVolume, { serving, snapshots, lost }: Contents): StatusAction => ({
  do: 'status',
  status: {
    ...status('ready'),
    sizeGibibytes,
    origin: source,
    serving,
    snapshots: snapshots.length === 0 ? undefined : snapshots.slice(0, SNAPSHOTS_MAXIMUM),
    lostSnapshots: lost.length === 0 ? undefined : lost,
  },
})
