/** The flows of a storage that is no boot storage. Each is an ordered list of conditions; the first that does not hold
 *  is the current step, so that a crash anywhere loses no progress. PostgreSQL decides to which server the disk
 *  belongs; the agents' reports decide whether a guest has it. */
import { isCancelled } from '../../../domain/operations.ts'
import { nodeOf } from '../../../resources/instance/index.ts'
import { firstDecision, type Rule as OperationRule } from '../../kit/operation/decision.ts'
import { refusalOf } from '../../kit/refusal.ts'
import type { StorageAction } from './actions.ts'
import { ATTACHED, CLAIMED, RESIZED } from './conditions.ts'
import { type Decision, failed, type OperationInput, reconciling, unchanged } from './decision.ts'
import { during, idOf, RECHECK_SECONDS } from './during.ts'
import { layOut, removeVolumes } from './layout.ts'
import { transferKeys } from './keys.ts'
import { moveOverdue } from './move.ts'

type Rule = OperationRule<OperationInput, Decision>

/** The wait after a refusal for lack of capacity: a host may have room by then. */
const NO_CAPACITY_WAIT_SECONDS = 20
/** Refusals that end by themselves: the operation waits. */
const PASSING_REFUSALS: readonly string[] = ['NoCapacity', 'StateNotAllowed']

const isPassing = (reason: string): boolean => PASSING_REFUSALS.includes(reason)

/** Claims what the change of that name needs. */
const claiming = (input: OperationInput, change: string): StorageAction => ({
  do: 'effect',
  name: 'claim',
  input: { accountId: idOf(input).accountId, change },
})

const claimed: Rule = (input) => {
  const { storage, observed } = input
  if (observed.accountId === undefined) return createFailed(input, 'claimed', 'The namespace belongs to no account.')
  if (observed.claim !== undefined) return undefined
  const refusal = refusalOf(storage, CLAIMED)
  if (refusal !== undefined && !isPassing(refusal.reason)) return createFailed(input, 'claimed', refusal.message)
  return {
    ...reconciling('creating', 'Claiming'),
    step: 'claimed',
    actions: [claiming(input, 'create')],
    waitFor: 'room in the zone',
    waitSeconds: refusal === undefined ? 0 : NO_CAPACITY_WAIT_SECONDS,
  }
}

/** Removes what was created until the cancellation; the storage is left to be deleted. Once the storage is complete, it
 *  is too late to cancel. */
const cancelled: Rule = (input) => {
  const { storage, observed, operation } = input
  const { claim } = observed
  const isMade = storage.status?.state === 'online' || (claim !== undefined && claim.phase !== 'detached')
  if (!isCancelled(operation) || isMade) return undefined
  const removal = removeVolumes(storage, observed)
  return removal === undefined
    ? { ...createFailed(input, 'made', 'Its creation was cancelled.'), outcome: 'cancelled' }
    : {
        ...removal,
        ...reconciling('creating', 'Cancelling'),
        step: 'made',
        waitFor: removal.waitFor ?? 'the host to remove what it has made',
      }
}

const isDataMade: Rule = (input) => {
  const { storage, observed } = input
  // Once it is attached, its volumes follow its server.
  if (observed.claim?.phase !== 'detached') return undefined
  const laid = layOut(storage, observed)
  if (laid.state === 'error') return createFailed(input, 'made', laid.detail ?? '')
  if (laid.state !== 'online') return { ...laid, step: 'made', waitFor: laid.waitFor ?? 'the host' }
  return observed.holdsSource === true
    ? { ...laid, step: 'made', actions: [...(laid.actions ?? []), ...sourceReleased(input)], waitSeconds: 0 }
    : undefined
}

/** A copy that is complete, or never will be, no longer holds its source. */
const sourceReleased = (input: OperationInput): readonly StorageAction[] =>
  input.observed.holdsSource === true ? [{ do: 'effect', name: 'releaseSource', input: idOf(input) }] : []

/** A storage that could not be created keeps its claims until it is deleted. */
function createFailed(input: OperationInput, step: Decision['step'], error: string): Decision {
  return { ...failed(error), step, outcome: 'failed', error, actions: sourceReleased(input) }
}

const isAttachWanted: Rule = (input) =>
  input.storage.spec.serverId === undefined ? during(input, 'attached', { outcome: 'succeeded' }) : undefined

const assigned =
  (step: Decision['step']): Rule =>
  (input) => {
    const { storage, observed } = input
    const { serverId } = storage.spec
    if (serverId === undefined) return attachFailed(input, step, 'The storage was detached meanwhile.')
    if (observed.claim?.serverId === serverId && observed.claim.phase !== 'leaving') return undefined
    if (observed.isServerGone) return attachFailed(input, step, `There is no server ${serverId}.`)
    const refusal = refusalOf(storage, ATTACHED)
    if (refusal !== undefined && !isPassing(refusal.reason)) return attachFailed(input, step, refusal.message)
    return during(input, step, {
      actions: [claiming(input, 'attach')],
      waitFor: 'the server to take the storage',
      waitSeconds: refusal === undefined ? 0 : RECHECK_SECONDS,
    })
  }

/** The data is where the server is. */
const isBrought =
  (step: Decision['step']): Rule =>
  (input) => {
    const { storage, observed } = input
    const { claim, serverNode, volumes } = observed
    const { serverId } = storage.spec
    if (claim?.phase !== 'arriving' || serverId === undefined) return undefined
    if (serverNode === undefined) return during(input, step, { waitFor: 'the server', waitSeconds: RECHECK_SECONDS })
    const there = volumes.find((one) => nodeOf(one) === serverNode)
    if (there?.status?.state === 'error')
      return attachFailed(input, step, there.status.detail ?? 'The data could not be brought to the server.')
    const isThere =
      there?.status?.state === 'ready' &&
      there.metadata.deletionTimestamp === undefined &&
      (claim.node === serverNode || there.spec.source?.kind === 'copy' || there.spec.pool !== undefined)
    const actions: readonly StorageAction[] = isThere
      ? [{ do: 'effect', name: 'land', input: { ...idOf(input), serverId, node: serverNode } }]
      : claim.node === serverNode
        ? []
        : transferKeys(
            storage,
            volumes.find((one) => nodeOf(one) === claim.node),
            there,
          )
    return during(input, step, {
      actions,
      waitFor: `the data to be on node ${serverNode}`,
      waitSeconds: isThere ? 0 : RECHECK_SECONDS,
    })
  }

const guestHas: Rule = (input) =>
  input.observed.guest === 'has'
    ? during(input, 'attached', { outcome: 'succeeded' })
    : during(input, 'attached', { waitFor: 'the guest to have the disk' })

/** Before the guest may have the disk, it is detached at once; after that the guest has to release it. */
function attachFailed(input: OperationInput, step: Decision['step'], error: string): Decision {
  const { claim } = input.observed
  const release: readonly StorageAction[] =
    claim?.serverId === undefined ? [] : [{ do: 'effect', name: 'release', input: { ...idOf(input), isForced: false } }]
  return during(input, step, {
    outcome: 'failed',
    error,
    actions: [...release, { do: 'change', patch: { spec: { serverId: null } } }],
  })
}

const released: Rule = (input) => {
  const { claim } = input.observed
  const isForced = input.operation.arguments?.['force'] === 'true'
  if (claim === undefined || claim.phase === 'detached') return undefined
  if (claim.phase === 'leaving' && (!isForced || claim.isForced)) return undefined
  return during(input, 'released', {
    actions: [{ do: 'effect', name: 'release', input: { ...idOf(input), isForced } }],
    waitFor: 'the server to stay where it is',
    waitSeconds: RECHECK_SECONDS,
  })
}

const guestReleased: Rule = (input) => {
  const { claim, guest } = input.observed
  if (claim?.phase !== 'leaving') return undefined
  return guest === 'has_not'
    ? during(input, 'detached', {
        actions: [{ do: 'effect', name: 'detach', input: idOf(input) }],
        waitFor: 'the next look',
        waitSeconds: 0,
      })
    : during(input, 'detached', { waitFor: 'the guest to release the disk' })
}

const detached: Rule = (input) => during(input, 'detached', { outcome: 'succeeded' })

/** The guest keeps the disk: it may be writing to it. */
function detachFailed(input: OperationInput, step: Decision['step'], error: string): Decision {
  const { claim } = input.observed
  return claim?.phase !== 'leaving'
    ? during(input, step, { outcome: 'failed', error })
    : during(input, step, {
        outcome: 'failed',
        error: `${error} The guest did not release the disk; detach it by force, or stop the server.`,
        actions: [
          { do: 'effect', name: 'keep', input: idOf(input) },
          { do: 'change', patch: { spec: { serverId: claim.serverId ?? null } } },
        ],
      })
}

const roomHeld: Rule = (input) => {
  const { storage, observed } = input
  if ((observed.heldGibibytes ?? 0) >= storage.spec.sizeGibibytes) return undefined
  const refusal = refusalOf(storage, RESIZED)
  if (refusal !== undefined && !isPassing(refusal.reason)) return resizeFailed(input, 'claimed', refusal.message)
  return during(input, 'claimed', {
    actions: [claiming(input, 'resize')],
    waitFor: 'room for it',
    waitSeconds: refusal === undefined ? 0 : NO_CAPACITY_WAIT_SECONDS,
  })
}

const grown: Rule = (input) => {
  const decision = during(input, 'grown')
  const size = decision.status?.sizeGibibytes
  return typeof size === 'number' && size >= input.storage.spec.sizeGibibytes
    ? { ...decision, outcome: 'succeeded' }
    : { ...decision, waitFor: decision.waitFor ?? 'the host to let the disk grow' }
}

/** The storage keeps the size that the host has given it; what was claimed beyond that is released. */
function resizeFailed(input: OperationInput, step: Decision['step'], error: string): Decision {
  const { storage, observed } = input
  const { serverId, isBoot } = storage.spec
  const sizeGibibytes = storage.status?.sizeGibibytes ?? storage.spec.sizeGibibytes
  const fit: StorageAction = {
    do: 'effect',
    name: 'fit',
    input: { ...idOf(input), size: { sizeGibibytes, isBoot, serverId } },
  }
  return during(input, step, {
    outcome: 'failed',
    error,
    actions: [
      { do: 'change', patch: { spec: { sizeGibibytes } } },
      ...((observed.heldGibibytes ?? 0) <= sizeGibibytes ? [] : [fit]),
    ],
  })
}

/** Snapshots are deleted before their storage, and a copy of it is completed first. */
const unheld: Rule = ({ storage, observed }) =>
  observed.isHeld === true
    ? {
        ...layOut(storage, observed), // which is how they are removed
        ...reconciling('deleting', 'Held', 'It has snapshots, or is being copied.'),
        step: 'removed',
        waitFor: 'its snapshots to be deleted',
        waitSeconds: NO_CAPACITY_WAIT_SECONDS,
      }
    : undefined

const volumesRemoved: Rule = (input) => {
  const { storage, observed } = input
  const removal = removeVolumes(storage, observed)
  return removal && { ...removal, step: 'removed', waitFor: removal.waitFor ?? 'the host to remove the disk' }
}

/** Nothing is released before the host has removed the data. */
const releaseClaims: Rule = (input) => ({
  ...reconciling('deleting', 'Deleting'),
  step: 'released',
  outcome: 'succeeded',
  actions: input.observed.accountId === undefined ? [] : [{ do: 'effect', name: 'giveBack', input: idOf(input) }],
  isGone: true,
})

export const create = (input: OperationInput): Decision =>
  firstDecision(input, [
    cancelled,
    claimed,
    isDataMade,
    isAttachWanted,
    assigned('attached'),
    isBrought('attached'),
    guestHas,
  ])
export const attach = (input: OperationInput): Decision =>
  firstDecision(input, [assigned('claimed'), isBrought('brought'), guestHas])
export const detach = (input: OperationInput): Decision => firstDecision(input, [released, guestReleased, detached])
export const resize = (input: OperationInput): Decision => firstDecision(input, [roomHeld, grown])
export const remove = (input: OperationInput): Decision =>
  firstDecision(input, [released, guestReleased, unheld, volumesRemoved, releaseClaims])

/** How an operation that passed its deadline leaves the storage. */
export function overdue(input: OperationInput, decision: Decision, error: string): Decision {
  const { step } = decision
  switch (input.operation.kind) {
    case 'storage.create':
      return input.observed.claim?.phase === undefined || input.storage.status?.state !== 'online'
        ? createFailed(input, step, error)
        : attachFailed(input, step, error)
    case 'storage.attach':
      return attachFailed(input, step, error)
    case 'storage.detach':
      return detachFailed(input, step, error)
    case 'storage.resize':
      return resizeFailed(input, step, error)
    case 'storage.move':
      return moveOverdue(input, decision, error)
    case 'storage.delete':
      return decision // a deletion continues until it is done
    default:
      return { ...unchanged(input), step, outcome: 'failed', error }
  }
}
