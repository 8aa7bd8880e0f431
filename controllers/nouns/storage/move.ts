/** The flow of storage.move: the data moves to another node, or to storage of another tier there. A storage without a
 *  server is copied while nobody can change it; a storage with a server moves with that server, which keeps running.
 *  The operation names the node that the storage leaves, so that an arrival is recognised even after a crash. */
import { defined } from '../../../domain/defined.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import { nodeOf } from '../../../resources/instance/index.ts'
import { firstDecision, type Rule as OperationRule } from '../../kit/operation/decision.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { startServerOperation } from '../../kit/platform-operation.ts'
import { refusalOf } from '../../kit/refusal.ts'
import { toSharedStorage } from '../../kit/shared-pools.ts'
import type { StorageAction } from './actions.ts'
import { RESERVED } from './conditions.ts'
import type { Decision, OperationInput, ReconcileInput } from './decision.ts'
import { during, idOf, RECHECK_SECONDS } from './during.ts'
import { transferKeys } from './keys.ts'
import { requestedTier, STORAGE_OPERATION, type StorageObject, effectiveTier } from './volumes.ts'

type Rule = OperationRule<OperationInput, Decision>

const ACTOR = 'system:storages'

interface MoveRequest {
  readonly source: string | undefined
  /** Any node that has room when undefined. */
  readonly target: string | undefined
  /** How a running server may be moved for it; by the server's policy when undefined. */
  readonly mode: string | undefined
}
const requestOf = ({ arguments: parameters = {} }: OperationStanza): MoveRequest => ({
  source: parameters['source_node_id'],
  target: parameters['target_node_id'],
  mode: parameters['mode'],
})

/** Whether its data is on the tier that the move requests; true when it requests none. */
function isOnTier({ storage, observed }: OperationInput): boolean {
  const tier = requestedTier(storage)
  const own = observed.volumes.find((one) => nodeOf(one) === observed.node)
  return tier === undefined || (tier === 'standard') === (own?.spec.pool !== undefined)
}

/** Whether the move may end on the node. A move that only changes the tier may end on any node: its server may have
 *  returned, meanwhile, to the node where the move was requested. */
const isNodeFit = ({ storage, operation }: OperationInput, node: string | undefined): boolean => {
  const { source, target } = requestOf(operation)
  if (target !== undefined) return node === target
  return node !== undefined && (requestedTier(storage) !== undefined || node !== source)
}

/** Whether the move is done, with the storage on that node. */
const isArrivedOn = (input: OperationInput, node: string | undefined): boolean =>
  isNodeFit(input, node) && isOnTier(input)

/** `storage.move`: the first rule that applies decides. */
export const move = (input: OperationInput): Decision =>
  firstDecision(input, isDetached(input) ? [reserved, isBrought, cleaned] : [serverMoved, cleaned])

const isDetached = ({ storage, observed: { claim } }: ReconcileInput): boolean =>
  !storage.spec.isBoot && claim?.phase === 'detached'

/** Its data stays where it is on the shared storage, which the other node reaches. */
const staysShared = (storage: StorageObject): boolean =>
  storage.status?.pool !== undefined && requestedTier(storage) === undefined

/** Where the data is according to PostgreSQL. */
const homeOf = (input: ReconcileInput): string | undefined =>
  isDetached(input) ? input.observed.claim?.node : input.observed.serverNode

const reserved: Rule = (input) => {
  const { storage, observed, operation } = input
  const { claim, unfitNodes } = observed
  const { target } = requestOf(operation)
  if (isArrivedOn(input, claim?.node)) return undefined
  // A server brought it there meanwhile. Source and target of the copy would be the same node.
  if (target !== undefined && claim?.node === target)
    return moveFailed(
      input,
      'reserved',
      `The storage is on node ${target} already, of its old tier. Name another node, or none, to change its tier.`,
    )
  if (claim?.targetNode !== undefined && (target === undefined || claim.targetNode === target)) return undefined
  const refusal = refusalOf(storage, RESERVED)
  if (refusal !== undefined) return moveFailed(input, 'reserved', refusal.message)
  return during(input, 'reserved', {
    actions: [
      {
        do: 'effect',
        name: 'reserveMove',
        input: { ...idOf(input), node: target, excludedNodes: unfitNodes, staysShared: staysShared(storage) },
      },
    ],
    waitFor: 'room on another node',
    waitSeconds: 0,
  })
}

/** The data is complete on the other node before anything is removed from its source. */
const isBrought: Rule = (input) => {
  const { storage, observed, operation } = input
  const { claim, volumes } = observed
  const node = claim?.targetNode
  if (node === undefined) return undefined
  const own = volumes.find((one) => nodeOf(one) === claim?.node)
  const there = volumes.find((one) => nodeOf(one) === node)
  if (there?.status?.state === 'error')
    return moveFailed(input, 'brought', there.status.detail ?? `The data could not be brought to node ${node}.`)
  const { source, pool } = there?.spec ?? {}
  const isThere =
    there?.status?.state === 'ready' &&
    there.metadata.deletionTimestamp === undefined &&
    (source === undefined
      ? pool !== undefined && pool === own?.spec.pool
      : source.kind === 'copy' && source.name === operation.id)
  const actions: readonly StorageAction[] = isThere
    ? [{ do: 'effect', name: 'landMove', input: { ...idOf(input), node } }]
    : transferKeys(storage, own, there)
  return during(input, 'brought', {
    actions,
    waitFor: `the data to be on node ${node}`,
    waitSeconds: isThere ? 0 : RECHECK_SECONDS,
  })
}

/** A guest and its disks on the host's own storage are never on two hosts: so its server moves, once. */
const serverMoved: Rule = (input) => {
  const { storage, observed, operation } = input
  const { server, serverNode } = observed
  if (server === undefined || serverNode === undefined)
    return moveFailed(input, 'reserved', 'The server of the storage was deleted.')
  const { operation: last } = server.spec
  const isOurs = last?.arguments?.[STORAGE_OPERATION] === operation.id
  const active = activeOperation(server)
  const serverId = server.metadata.name
  const isDeleted = server.metadata.deletionTimestamp !== undefined
  // A server that is being deleted first ends its move, with the disk as this move requires.
  if (active !== undefined && (isOurs || !isDeleted))
    return during(input, isOurs ? 'brought' : 'reserved', {
      waitFor: isOurs ? `server ${serverId} to arrive` : `operation ${active.kind} of server ${serverId}`,
      waitSeconds: RECHECK_SECONDS,
    })
  // The server may have moved there for another reason, with its disks unchanged.
  if (isArrivedOn(input, serverNode)) return undefined
  if (isDeleted) return moveFailed(input, 'reserved', 'The server of the storage is being deleted.')
  if (isOurs)
    return moveFailed(
      input,
      'brought',
      `Server ${serverId} could not be moved: ${server.status?.operation?.error || 'its move was cancelled.'}`,
    )
  if (staysShared(storage) ? observed.isHeldOnHost === true : observed.isHeldInPlace === true)
    return moveFailed(input, 'reserved', 'The storage has snapshots, or is being copied. Move it afterwards.')
  const { target, mode } = requestOf(operation)
  const state = server.status?.state
  if (state !== 'started' && state !== 'stopped')
    return during(input, 'reserved', { waitFor: `server ${serverId} to be started or stopped` })
  return during(input, 'reserved', {
    actions: [
      startServerOperation({
        namespace: storage.metadata.namespace ?? '',
        id: serverId,
        kind: state === 'started' ? 'server.migrate' : 'server.move',
        actor: ACTOR,
        arguments: {
          [STORAGE_OPERATION]: operation.id,
          ...defined({ target_node_id: target }),
          ...(mode === undefined || state !== 'started' ? {} : { mode }),
          ...(requestedTier(storage) === 'standard' ? toSharedStorage : {}),
        },
      }),
    ],
    events: [
      {
        kind: 'server_move_requested',
        message: `Server ${serverId} takes the storage along.`,
        data: { server_id: serverId },
      },
    ],
    waitFor: `server ${serverId} to move`,
    waitSeconds: RECHECK_SECONDS,
  })
}

/** The storage has its new tier, and its data is nowhere else. */
const cleaned: Rule = (input) => {
  const { storage, observed } = input
  const tier = effectiveTier(storage)
  if (tier !== storage.spec.tier)
    return during(input, 'cleaned', {
      actions: [{ do: 'change', patch: { spec: { tier } } }],
      events: [{ kind: 'tier_changed', message: `The storage is of tier ${tier} now.`, data: { tier } }],
      waitFor: 'the tier to be written',
      waitSeconds: 0,
    })
  const home = homeOf(input)
  const left = observed.volumes.map(nodeOf).find((node) => node !== home)
  return left === undefined
    ? during(input, 'cleaned', { outcome: 'succeeded' })
    : during(input, 'cleaned', { waitFor: `node ${left} to remove what was there` })
}

/** The storage stays where it is. */
export function moveFailed(input: OperationInput, step: Decision['step'], error: string): Decision {
  const { claim } = input.observed
  const release: readonly StorageAction[] =
    claim?.targetNode === undefined ? [] : [{ do: 'effect', name: 'releaseMove', input: idOf(input) }]
  return during(input, step, { outcome: 'failed', error, actions: release })
}

/** A move that has passed its deadline; when a server is moving for it, it ends with the server's move. */
export function moveOverdue(input: OperationInput, decision: Decision, error: string): Decision {
  const { server } = input.observed
  const active = server && activeOperation(server)
  return active?.arguments?.[STORAGE_OPERATION] === input.operation.id
    ? decision
    : moveFailed(input, decision.step ?? 'reserved', error)
}

/** Another operation followed, and nothing moves the data there any longer. */
export function releaseUnusedMove(input: ReconcileInput): readonly StorageAction[] {
  const { storage, observed } = input
  if (observed.claim?.targetNode === undefined || observed.accountId === undefined) return []
  if (activeOperation(storage)?.kind === 'storage.move') return []
  const id = { accountId: observed.accountId, storageId: storage.metadata.name }
  return [{ do: 'effect', name: 'releaseMove', input: id }]
}
