/** The custom image's plan: pure, synchronous, total. Every node of the zone holds the image as an Image in its
 *  namespace; the image is online when all reachable nodes hold it. */
import { defined } from '../../../domain/defined.ts'
import { nodeOf } from '../../../resources/instance/index.ts'
import { CustomImage, type CustomImageStatus } from '../../../resources/custom-image/index.ts'
import { failedImages } from '../../kit/failed-images.ts'
import { type Health, healthConditions } from '../../kit/health.ts'
import { operationActions, type OperationDecision, truncated, waitActions } from '../../kit/operation/decision.ts'
import { auditRequests } from '../../kit/operation/direct-edit.ts'
import { type During, planOperations } from '../../kit/operation/plan.ts'
import { isCancelled, type KindOf } from '../../../domain/operations.ts'
import { UNKNOWN_IMAGE_GIBIBYTES } from '../../../domain/account/quota.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { refusalOf } from '../../kit/refusal.ts'
import { removals, spread } from './copies.ts'
import type { CustomImageAction, CustomImageObject, DiskSource, ImageObject, Observed } from './observed.ts'

interface ReconcileInput {
  readonly image: CustomImageObject
  readonly observed: Observed
  readonly now: Date
}

interface Decision extends OperationDecision<CustomImageAction, KindOf<'template'>> {
  readonly state: CustomImageStatus['state']
  readonly health: Health
  readonly detail?: string
  readonly sizeGibibytes?: number | undefined
  readonly origin?: CustomImageStatus['origin']
  readonly minMemoryMebibytes?: number | undefined
  readonly isGone?: boolean
}

/** Condition with the reason why PostgreSQL refused the image its part of the quota. */
export const CLAIMED = 'Claimed'
const NODES_WAIT_SECONDS = 10
const USERS_WAIT_SECONDS = 2

export const plan = planOperations<CustomImageObject, Observed, ReconcileInput, Decision, CustomImageAction>({
  label: 'A custom image',
  endedByDeletion: () => false,
  flows: { 'template.create': create, 'template.copy': create, 'template.delete': remove },
  inputOf: (image, observed, now) => ({ image, observed, now }),
  unchanged,
  always: ({ image, observed }) => auditRequests(image, observed.edits ?? []),
  detectEdit({ image, observed }) {
    const kind = detectEdit(image)
    return kind && { kind, field: '', actor: observed.editor }
  },
  idle: (input) => (isLeaving(input.image) ? remove(input) : idle(input)),
  // A deletion continues after its operation has failed.
  overdue: ({ image }, decision, error) =>
    isLeaving(image) ? { ...decision, outcome: 'failed', error } : failed(error),
  toActions: ({ image }, decision) => [
    ...(decision.actions ?? []),
    ...operationActions(image, decision),
    {
      do: 'status',
      status: {
        state: decision.state,
        stateDetail: decision.detail === undefined ? undefined : truncated(decision.detail),
        sizeGibibytes: decision.sizeGibibytes,
        origin: decision.origin,
        minMemoryMebibytes: decision.minMemoryMebibytes,
      },
      conditions: healthConditions(decision.health, toReason(decision.state), truncated(decision.detail ?? '')),
    },
    ...(decision.isGone === true ? [{ do: 'finalized' } as const] : []),
    ...waitActions(decision),
  ],
})

const toReason = (state: string): string => state.slice(0, 1).toUpperCase() + state.slice(1)

/** The operation that an edit needs. */
export function detectEdit(
  image: CustomImageObject,
): 'template.create' | 'template.copy' | 'template.delete' | undefined {
  const { operation } = image.spec
  if (image.metadata.deletionTimestamp !== undefined)
    return operation?.kind === 'template.delete' ? undefined : 'template.delete'
  if (operation !== undefined || image.status !== undefined) return undefined
  return image.spec.source.imageId === undefined ? 'template.create' : 'template.copy'
}

/** It is deleted, or its deletion was requested. */
export const isLeaving = ({ metadata, spec }: CustomImageObject): boolean =>
  metadata.deletionTimestamp !== undefined || spec.operation?.kind === 'template.delete'

const creating = (rest: Partial<Decision>): Decision => ({ state: 'creating', health: 'reconciling', ...rest })
const failed = (error: string): Decision => ({
  state: 'error',
  health: 'stalled',
  detail: error,
  step: 'fetched',
  outcome: 'failed',
  error,
})

function unchanged({ image: { status } }: ReconcileInput): Decision {
  const { state = 'creating', stateDetail, sizeGibibytes, origin, minMemoryMebibytes } = status ?? {}
  const health = state === 'online' ? 'ready' : state === 'error' ? 'stalled' : 'reconciling'
  const known = { sizeGibibytes, origin, minMemoryMebibytes }
  return { state, health, ...known, ...defined({ detail: stateDetail }) }
}

/** Steps in order: claimed, fetched. */
function create(input: During<ReconcileInput>): Decision {
  const { image, observed, operation } = input
  const { accountId, isClaimed, isZoneKnown, nodes, images } = observed
  if (accountId === undefined) return { ...failed('The namespace belongs to no account.'), step: 'claimed' }
  if (!isZoneKnown) return { ...failed(`There is no zone ${image.spec.zone}.`), step: 'claimed' }
  if (isCancelled(operation))
    return { ...failed('Its creation was cancelled.'), outcome: 'cancelled', actions: removals(images) }
  const lacking = lackingGibibytes(observed)
  if (!isClaimed || lacking !== undefined) {
    const refusal = refusalOf(image, CLAIMED)
    if (refusal !== undefined) return { ...failed(refusal.message), step: 'claimed', actions: removals(images) }
    const sizeGibibytes = lacking ?? observed.sourceGibibytes ?? UNKNOWN_IMAGE_GIBIBYTES
    return creating({
      step: 'claimed',
      actions: [{ do: 'effect', name: 'claim', input: { accountId, imageId: image.metadata.name, sizeGibibytes } }],
      waitFor: 'the quota',
      waitSeconds: 0,
    })
  }
  const refused = images.find(({ status }) => status?.state === 'error')
  if (refused !== undefined)
    return { ...failed(refused.status?.detail ?? 'A node could not hold it.'), actions: removals(images) }
  const held = heldBy(images, nodes)
  if (nodes.length > 0 && held.length === nodes.length)
    return { ...online(observed, held), step: 'fetched', outcome: 'succeeded', actions: spread(image, observed) }
  const obstacle = held.length === 0 ? sourceObstacle(image, observed) : undefined
  if (obstacle?.is === 'refused') return { ...failed(obstacle.why), actions: removals(images) }
  const detail = images.find(({ status }) => status?.state === 'creating')?.status?.detail
  return creating({
    step: 'fetched',
    actions: spread(image, observed),
    waitFor: nodes.length === 0 ? 'a node of the zone' : (obstacle?.for ?? 'the nodes of the zone to hold it'),
    waitSeconds: NODES_WAIT_SECONDS,
    ...(detail === undefined ? {} : { detail, events: [{ kind: 'image', message: detail }] }),
  })
}

/** The size of its disk, when that is known and more than it has claimed of the quota. */
function lackingGibibytes({
  isClaimed,
  claimedGibibytes = 0,
  sourceGibibytes = 0,
  images,
}: Observed): number | undefined {
  const found = images.map(({ status }) => status?.neededGibibytes ?? 0)
  const needed = Math.max(sourceGibibytes, ...found)
  return isClaimed && needed > claimedGibibytes ? needed : undefined
}

/** For an image created from a disk: its actual size counts, whatever the limit. One that could not be created counts
 *  nothing. */
function recordSize(
  { metadata: { name: imageId }, status }: CustomImageObject,
  { accountId, isClaimed, claimedGibibytes }: Observed,
): readonly CustomImageAction[] {
  const sizeGibibytes = status?.state === 'online' ? status.sizeGibibytes : 0
  if (accountId === undefined || !isClaimed || sizeGibibytes === undefined) return []
  if (claimedGibibytes === sizeGibibytes) return []
  return [{ do: 'effect', name: 'recordSize', input: { accountId, imageId, sizeGibibytes } }]
}

/** Its complete Images, on reachable nodes. */
const heldBy = (images: readonly ImageObject[], nodes: readonly string[]): readonly ImageObject[] =>
  images.filter(
    (one) =>
      one.status?.state === 'ready' && one.metadata.deletionTimestamp === undefined && nodes.includes(nodeOf(one)),
  )

/** Why its source cannot be read while no node of the zone holds the image. */
function sourceObstacle(
  { spec: { source } }: CustomImageObject,
  { disk, origin }: Observed,
): Exclude<DiskSource, { readonly is: 'known' }> | undefined {
  if (source.imageId !== undefined)
    return origin === undefined
      ? { is: 'refused', why: `Custom image ${source.imageId} no longer exists.` }
      : origin.images.some(({ status }) => status?.state === 'ready')
        ? undefined
        : { is: 'waiting', for: 'a node that holds the image that it is a copy of' }
  return disk?.is === 'known' ? undefined : disk
}

const online = ({ minMemoryMebibytes }: Observed, held: readonly ImageObject[]): Decision => {
  const origin = held[0]?.status?.origin
  return {
    state: 'online',
    health: 'ready',
    sizeGibibytes: Math.max(0, ...held.map((one) => one.status?.sizeGibibytes ?? 0)),
    ...defined({ origin }),
    minMemoryMebibytes,
  }
}

/** Nodes that have joined the zone get it too; a failed node is tried again after a while, which changes nothing for
 *  the others. */
function idle(input: ReconcileInput): Decision {
  const { image, observed, now } = input
  const sized = recordSize(image, observed)
  if (image.status?.state !== 'online')
    return { ...unchanged(input), actions: [...removals(observed.images), ...sized] }
  const { due, waitSeconds } = failedImages(observed.images, now)
  return {
    ...unchanged(input),
    actions: [...spread(image, observed), ...removals(due), ...sized],
    ...(waitSeconds === undefined ? {} : { waitFor: 'another attempt', waitSeconds }),
  }
}

/** It is deleted when no reachable node holds it; an unreachable node removes its Image when it returns. */
function remove({ image, observed, now }: ReconcileInput): Decision {
  const { accountId, images, nodes, users = [] } = observed
  const { namespace = '', name, deletionTimestamp } = image.metadata
  const leaving: Decision = { state: 'deleting', health: 'reconciling', step: 'removed' }
  if (deletionTimestamp === undefined)
    return { ...leaving, actions: [{ do: 'remove', type: CustomImage, key: { namespace, name } }] }
  // What is being created from it is finished first: nothing new starts.
  if (users.length > 0)
    return {
      ...leaving,
      actions: images.length === 0 ? [] : [...spread(image, observed), ...removals(failedImages(images, now).due)],
      waitFor: `${users[0]}, which is being made from it`,
      waitSeconds: USERS_WAIT_SECONDS,
    }
  const left = images.filter((one) => nodes.includes(nodeOf(one)))
  if (left.length > 0 || images.some(({ metadata }) => metadata.deletionTimestamp === undefined))
    return { ...leaving, actions: removals(images), waitFor: 'the nodes to remove it', waitSeconds: NODES_WAIT_SECONDS }
  return {
    ...leaving,
    actions: accountId === undefined ? [] : [{ do: 'effect', name: 'giveBack', input: { accountId, imageId: name } }],
    ...(activeOperation(image) === undefined ? {} : { outcome: 'succeeded' }),
    isGone: true,
  }
}
