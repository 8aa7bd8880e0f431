/** Decides what to do for one Image: create it on the host, or remove it. Pure. */
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import { IMAGE_GIBIBYTES_MAXIMUM, type ImageSpec, type ImageStatus } from '../../../resources/instance/index.ts'
import { isNameTaken } from '../../../resources/instance/name-taken.ts'
import type { BytesEntry } from '../ledger.ts'
import { NAME_FREE, nameTaken } from '../name-taken.ts'
import type { HeldImage } from '../images/image-store.ts'
import { DETAIL_CHARACTERS_MAXIMUM } from '../instance/plan.ts'
import type { CopyState } from '../volume/copies.ts'

export type ImageObject = KubeObject<ImageSpec, ImageStatus>

export interface ObservedImage {
  readonly held: HeldImage | undefined
  /** The import that is running or has just failed. */
  readonly fetching: CopyState | undefined
  /** The host's ledger entry for an image of this name. */
  readonly bytes?: BytesEntry | undefined
  /** Address where it is served, and for which operation. */
  readonly serving?: ImageStatus['serving']
  /** The disk to create it from: whether it is on the host, and the guest that may have it open. */
  readonly volume?: { readonly isHere: boolean; readonly user: string | undefined } | undefined
}

export interface ImageEffects {
  readonly noteMade: Record<string, never>
  readonly fetch: Record<string, never>
  readonly make: Record<string, never>
  readonly read: Record<string, never>
  readonly copy: { readonly host: string; readonly port: number }
  readonly serve: { readonly id: string }
  readonly stopServing: Record<string, never>
  readonly remove: Record<string, never>
}

const VOLUME_SECONDS = 5

const effect = <Name extends keyof ImageEffects>(name: Name, input: ImageEffects[Name]): Action => ({
  do: 'effect',
  name,
  input,
})
const wait = (seconds: number, what: string): Action => ({ do: 'wait', seconds, for: what })
const requeue = wait(0, 'the next look')

type Report = {
  readonly [Field in 'detail' | 'sizeGibibytes' | 'neededGibibytes' | 'origin' | 'serving']?:
    | ImageStatus[Field]
    | undefined
}
const report = (
  state: ImageStatus['state'],
  { detail, ...known }: Report = {},
): Extract<Action, { readonly do: 'status' }> => ({
  do: 'status',
  status: {
    state,
    detail: detail?.slice(0, DETAIL_CHARACTERS_MAXIMUM),
    sizeGibibytes: known.sizeGibibytes,
    neededGibibytes: known.neededGibibytes,
    origin: known.origin,
    serving: known.serving,
  },
})

/** Guards in order: deleting, image of another object; then unknown to the ledger, present, failed, absent. */
export function planImage(image: ImageObject, observed: ObservedImage): Action[] {
  const { metadata, status } = image
  const isTaken = isOfAnother(image, observed)
  if (metadata.deletionTimestamp !== undefined) {
    // The report is final: the object is deleted when the platform has read it.
    if (status?.isRemoved === true) return []
    return [
      ...(isTaken ? [] : [effect('remove', {})]),
      { do: 'status', status: { state: status?.state ?? 'creating', isRemoved: true } },
    ]
  }
  if (isTaken) return [{ ...report('error', { detail: TAKEN_DETAIL }), conditions: [nameTaken(TAKEN_DETAIL)] }]
  const actions = planFree(image, observed)
  return isNameTaken(status?.conditions)
    ? actions.map((action) => (action.do === 'status' ? { ...action, conditions: [NAME_FREE] } : action))
    : actions
}

/** What is done while no other object has the name. */
function planFree(image: ImageObject, observed: ObservedImage): Action[] {
  const { metadata, spec, status } = image
  const { held, bytes } = observed
  if (held !== undefined && (bytes?.state !== 'made' || bytes.uid !== metadata.uid))
    return [effect('noteMade', {}), requeue]
  if (held !== undefined) return planHeld(image, observed, held)
  // A refusal is final: whoever created the object decides what follows.
  if (status?.state === 'error' && !isNameTaken(status.conditions)) return []
  if (spec.url !== undefined) return planFetch(spec, observed)
  // A second fetch, copy or read of a snapshot gives the same data. A disk has changed since.
  if (spec.volume !== undefined && (status?.state === 'ready' || status?.state === 'lost' || wasMade(observed)))
    return [report('lost', { detail: LOST })]
  if (spec.volume !== undefined) return planMake(observed)
  if (spec.snapshot !== undefined) return planRead('snapshot', observed)
  if (spec.backup !== undefined) return planRead('backup', observed)
  return planCopy(spec, observed)
}

function planHeld(
  { spec: { serve } }: ImageObject,
  { serving }: ObservedImage,
  { sizeGibibytes, origin }: HeldImage,
): Action[] {
  if (serve !== undefined && serving?.id !== serve.id)
    return [report('ready', { sizeGibibytes, origin }), effect('serve', { id: serve.id }), requeue]
  if (serve === undefined && serving !== undefined) return [effect('stopServing', {}), requeue]
  return [report('ready', { sizeGibibytes, origin, serving })]
}

/** The image on the host was created for another object of the name. */
const isOfAnother = ({ metadata: { uid } }: ImageObject, { held, bytes }: ObservedImage): boolean =>
  held !== undefined && bytes !== undefined && bytes.state !== 'removed' && bytes.uid !== uid
const TAKEN_DETAIL = 'An image that was made for another object of this name is on the host. It stays.'

const wasMade = ({ bytes }: ObservedImage): boolean => bytes?.madeFor !== undefined
const LOST = 'The image was made from the disk once, and is no longer on this host.'

/** A disk that is too large waits until its limit allows its size. Then the file is fetched again. */
function planFetch({ maximumGibibytes = IMAGE_GIBIBYTES_MAXIMUM }: ImageSpec, { fetching }: ObservedImage): Action[] {
  if (fetching?.is === 'running') return [report('creating', { detail: 'being fetched' })]
  if (fetching !== undefined) {
    const { reason, neededGibibytes } = fetching
    if (neededGibibytes === undefined || neededGibibytes > IMAGE_GIBIBYTES_MAXIMUM)
      return [report('error', { detail: reason })]
    if (neededGibibytes > maximumGibibytes)
      return [report('creating', { detail: `waiting for ${neededGibibytes} GiB of the quota`, neededGibibytes })]
  }
  return [report('creating', { detail: 'being fetched' }), effect('fetch', {})]
}

/** A guest that needs the disk has priority. The image is then created again after the guest has stopped. */
function planMake({ fetching, volume }: ObservedImage): Action[] {
  if (fetching?.is === 'failed' && fetching.isFinal === true) return [report('error', { detail: fetching.reason })]
  if (fetching?.is === 'running') return [report('creating', { detail: 'being made of the disk' })]
  const obstacle =
    volume?.isHere !== true
      ? 'the disk is not on this host'
      : volume.user !== undefined
        ? 'waiting for the server to be stopped'
        : fetching?.reason
  if (obstacle === undefined) return [report('creating', { detail: 'being made of the disk' }), effect('make', {})]
  return [report('creating', { detail: obstacle }), wait(VOLUME_SECONDS, 'the disk')]
}

/** A failure that is not final expires after a while. Then the read is retried. */
function planRead(what: 'snapshot' | 'backup', { fetching }: ObservedImage): Action[] {
  if (fetching?.is === 'failed')
    return [report(fetching.isFinal === true ? 'error' : 'creating', { detail: fetching.reason })]
  const detail = fetching?.progress ?? `being made of the ${what}`
  return [report('creating', { detail }), ...(fetching === undefined ? [effect('read', {})] : [])]
}

function planCopy({ copyFrom }: ImageSpec, { fetching }: ObservedImage): Action[] {
  if (fetching?.is === 'failed' && fetching.isFinal === true) return [report('error', { detail: fetching.reason })]
  if (copyFrom === undefined) return [report('creating', { detail: 'waiting for another node to serve it' })]
  const { host, port } = copyFrom
  const detail = fetching?.is === 'failed' ? fetching.reason : 'being copied from another node'
  return [report('creating', { detail }), effect('copy', { host, port })]
}
