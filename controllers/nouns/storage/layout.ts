/** Where the data of a storage is: a disk is a Volume on one node and, while it moves to another, with its server or to
 *  it, a second Volume there. Pure. Data is deleted with one Volume only: data on shared storage with the Volume on the
 *  storage's own node, and data on a node's own disks never before the new node has it. */
import { defined } from '../../../domain/defined.ts'
import { nodeOf } from '../../../resources/instance/index.ts'
import type { PlainAction } from '../../kit/effects.ts'
import { isGranted, refusalOf } from '../../kit/refusal.ts'
import { KEY_SHARED } from './conditions.ts'
import { type Decision, failed, reconciling } from './decision.ts'
import { removeKeysOf } from './keys.ts'
import type { Observed } from './observed.ts'
import { contentOfSource, needsOfSource, type SourceContent } from './sources.ts'
import { syncVolumes } from './sync-volumes.ts'
import {
  ensureOwn,
  ensureVolume,
  hasSameData,
  isBroughtByMove,
  isTerminating,
  poolAmong,
  removeVolume,
  type StorageObject,
  type VolumeObject,
  isToTakeOver,
  effectiveTier,
  withdraw,
} from './volumes.ts'

/** Room is claimed in PostgreSQL, where no event wakes the reconciler. */
const PLACE_LOOK_SECONDS = 5

/** PostgreSQL has lost its record: the existing volumes stay as they are. */
const forgotten = (volumes: readonly VolumeObject[]): Decision | undefined =>
  volumes.some(({ status }) => status?.state === 'ready')
    ? {
        state: 'online',
        health: 'stalled',
        reason: 'Forgotten',
        message: 'The platform has no record of where it is. Its data are there; the operators were informed.',
      }
    : undefined

/** Guards in order: no node, another zone, volume missing, volume at work. */
export function layOut(storage: StorageObject, observed: Observed): Decision {
  const { spec } = storage
  const { node } = observed
  const fallback = node === undefined ? forgotten(observed.volumes) : undefined
  if (fallback !== undefined) return fallback
  if (node === undefined)
    return {
      ...reconciling('creating', 'Waiting', 'It has no room on any host yet.'),
      waitFor: 'room on a host',
      waitSeconds: PLACE_LOOK_SECONDS,
    }
  // The last reconcile in this zone: the process that owns the other zone continues.
  if (spec.isBoot && observed.zone !== undefined && observed.zone !== spec.zone)
    return {
      ...reconciling('creating', 'Waiting'),
      hasLeftZone: true,
      actions: [{ do: 'change', patch: { spec: { zone: observed.zone } } }],
      waitFor: 'the next look',
      waitSeconds: 0,
    }
  const volume = observed.volumes.find((one) => nodeOf(one) === node)
  const elsewhere = syncVolumes(storage, observed, volume)
  const pool = volume === undefined ? poolOf(storage, observed) : volume.spec.pool
  const place = { nodeName: node, pool, ...defined({ region: observed.region }) }
  const holder = pool === undefined ? observed.volumes[0] : undefined
  if (volume === undefined && holder !== undefined)
    return failed(`The disk is on node ${nodeOf(holder)}, which the server is not on.`, elsewhere)
  if (volume === undefined) return makeVolume(storage, observed, { node, place, elsewhere })
  if (volume.status?.state === 'error' || volume.status?.state === 'lost')
    return failed(volume.status.detail ?? 'The host could not make the disk.', elsewhere)
  const isReady = volume.status?.state === 'ready'
  if (!isReady && volume.spec.source?.kind === 'image' && observed.image === undefined)
    return failed('The image that it was to be made from no longer exists.', elsewhere)
  return {
    ...(isReady
      ? { state: 'online', health: 'ready', reason: 'Online', message: volume.status?.detail ?? '' }
      : {
          ...reconciling('creating', 'Creating', volume.status?.detail),
          ...defined({ detail: volume.status?.detail }),
        }),
    actions: elsewhere,
    status: { sizeGibibytes: volume.status?.sizeGibibytes, ...place },
  }
}

interface Making {
  readonly node: string
  readonly place: { readonly nodeName: string; readonly pool: string | undefined; readonly region?: string | undefined }
  /** The actions on volumes of other nodes. */
  readonly elsewhere: readonly PlainAction[]
}

/** Creates the volume, once the node has what it needs for that. */
function makeVolume(storage: StorageObject, observed: Observed, { node, place, elsewhere }: Making): Decision {
  const refusal = refusalOf(storage, KEY_SHARED)
  if (refusal !== undefined) return failed(refusal.message, elsewhere)
  const initial = initialContent(storage, observed)
  if (initial.is === 'refused') return failed(initial.why, elsewhere)
  if (initial.is === 'waiting')
    return {
      ...reconciling('creating', 'Waiting'),
      actions: elsewhere,
      waitFor: initial.for,
      waitSeconds: PLACE_LOOK_SECONDS,
    }
  const needs = needsOfSource(storage.spec.source, observed)
  if (needs.length > 0 && !isGranted(storage, KEY_SHARED))
    return {
      ...reconciling('creating', 'Creating'),
      actions: [...needs, ...elsewhere],
      waitFor: 'the host to have the key of the backup',
      waitSeconds: 0,
    }
  return {
    ...reconciling('creating', 'Creating'),
    actions: [
      ...needs,
      ensureVolume(storage, node, {
        pool: place.pool,
        takesOverFrom: place.pool === undefined ? undefined : lostBootsBeside(node, observed),
        ...initial.content,
      }),
      ...elsewhere,
    ],
    status: place,
  }
}

const lostBootsBeside = (node: string, { lostBoots = [] }: Observed): Observed['lostBoots'] => {
  const others = lostBoots.filter((one) => one.node !== node)
  return others.length === 0 ? undefined : others
}

/** A disk stays on the storage where it was created. */
function poolOf(storage: StorageObject, { volumes: [known], pools }: Observed): string | undefined {
  if (known !== undefined) return known.spec.pool
  return storage.status?.nodeName === undefined ? poolAmong(effectiveTier(storage), pools) : storage.status.pool
}

/** Data that is on shared storage already is not created again. */
function initialContent({ spec }: StorageObject, observed: Observed): SourceContent<'source' | 'origin'> {
  const [known] = observed.volumes
  if (known?.spec.pool === undefined) return contentOfSource(spec.source, observed)
  const origin = known.status?.origin ?? known.spec.origin
  return { is: 'known', content: origin === undefined ? {} : { origin } }
}

const SUCCESSOR_WAIT_SECONDS = 10

/** The volume of the storage's own node is removed last, with the data. When that node has none any longer, another
 *  volume that can delete the data takes its part. While that volume is being deleted, the others stay: it may have
 *  been released from a lost node without deleting the data, which a stale cache does not show. Undefined when no
 *  volume is left. */
export function removeVolumes(storage: StorageObject, observed: Observed): Decision | undefined {
  const { volumes, node } = observed
  // A withdrawn volume leaves the data behind: when its node returns, another volume still has to delete the data.
  const able = volumes.filter((one) => !isTerminating(one) || one.spec.isRetained !== true)
  const own =
    able.find((one) => nodeOf(one) === node) ??
    able.find(({ spec }) => spec.isRetained !== true) ??
    able[0] ??
    volumes[0]
  if (own === undefined) return undefined
  const others = volumes.filter((one) => one !== own)
  // The data is also without a volume to delete it when all volumes were withdrawn, each before the cache showed that
  // the other one was.
  const isLost = own.spec.pool !== undefined && (able.length === 0 || (observed.lostNodes ?? []).includes(nodeOf(own)))
  const actions = isLost
    ? handOverToSuccessor(storage, observed, own)
    : isTerminating(own)
      ? []
      : others.length > 0
        ? withdrawOthers(storage, others, { own, lostBoots: observed.lostBoots })
        : [ensureOwn(storage, own, { lostBoots: observed.lostBoots }), removeVolume(own)]
  return {
    ...reconciling('deleting', 'Deleting'),
    actions: [...removeKeysOf(storage, volumes), ...actions],
    ...(isLost ? { waitFor: 'a node that reaches the disk', waitSeconds: SUCCESSOR_WAIT_SECONDS } : {}),
  }
}

/** The own volume may be marked to leave the data behind, which a stale cache does not show. So it is first marked to
 *  delete the data, before another volume is withdrawn. The deletion is an order for each copy of the data, also on the
 *  target of a move that has not ended. */
function withdrawOthers(
  storage: StorageObject,
  others: readonly VolumeObject[],
  { own, lostBoots }: { readonly own: VolumeObject; readonly lostBoots: Observed['lostBoots'] },
): readonly PlainAction[] {
  const left = others.filter((one) => !isTerminating(one))
  return left.length > 0 && (own.spec.isRetained === true || isToTakeOver(own, lostBoots))
    ? [ensureOwn(storage, own, { lostBoots })]
    : left.flatMap((one) => [
        ...(isBroughtByMove(one) && !hasSameData(one, own) ? [ensureOwn(storage, one)] : []),
        ...withdraw(storage, one, own),
      ])
}

/** Shared data whose only volume is on a lost node is handed to a node that can access the pool, so that it can be
 *  deleted there. Once that node has its volume, the lost one is withdrawn, and the proof that its node is lost removes
 *  it. Where no other node can access the pool, only a forced release continues without one. */
function handOverToSuccessor(storage: StorageObject, observed: Observed, lost: VolumeObject): readonly PlainAction[] {
  const { volumes, lostNodes = [], successorNode, isReleased = false } = observed
  const successor = volumes.find(
    (one) => one !== lost && hasSameData(one, lost) && !isTerminating(one) && !lostNodes.includes(nodeOf(one)),
  )
  if (successor !== undefined) return successor.status === undefined ? [] : withdraw(storage, lost, lost)
  if (successorNode === undefined) return isReleased && !isTerminating(lost) ? [removeVolume(lost)] : []
  return [
    ensureVolume(storage, successorNode, {
      pool: lost.spec.pool,
      origin: lost.status?.origin ?? lost.spec.origin,
      takesOverFrom: lostBootsBeside(successorNode, observed),
      isRetained: true,
    }),
  ]
}
