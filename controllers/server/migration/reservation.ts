/** How every move begins and ends: room is held on another node and written down before anything is done with it, and
 *  what ended is
 *  never begun anew. */
import { UNMADE } from '../../../domain/server-rules.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import { refusalOf } from '../../refusal.ts'
import { asBefore, type Decision, type Work } from '../decision.ts'
import { RESERVED } from './effects.ts'
import { inState, type Moving, reasonToEnd, writtenMove } from './input.ts'
import { cleaned } from './cutover.ts'
import { ended } from './undo.ts'

/** Goes on with the flow once room is held for the operation's move. Guards in order: disk unknown, not whole, over,
 *  moved, refused, not held, not written. */
export function reserved(work: Work, flow: (moving: Moving) => Decision): Decision {
  const {
    server,
    seen: { claims, storage },
    operation,
  } = work
  const written = writtenMove(server, operation.id)
  if (written !== undefined && storage === undefined) return diskUnknown(work)
  if (claims === undefined || storage === undefined)
    return { ...asBefore(work), step: 'reserved', outcome: 'failed', error: UNMADE }
  if (claims.target?.operationId === operation.id) {
    const moving = movingTo(work, claims.target)
    return moving.written.state === 'reserved' && written?.targetNode !== moving.targetNode
      ? writeDown(moving)
      : flow(moving)
  }
  if (written?.targetNode === claims.placement.node) return cleaned(work, written)
  if (written?.state === 'aborting') return ended(work, written.detail)
  const reason = reasonToEnd(work) ?? refusal(work)
  return reason === undefined
    ? { ...asBefore(work), step: 'reserved', actions: [reserve(work)], waitFor: 'room on another node', waitSeconds: 1 }
    : ended(work, reason)
}

/** What moves has a disk: who looks after its zone since a moment ago may know the server before it knows the disk. */
export const diskUnknown = (work: Work): Decision => ({
  ...asBefore(work),
  step: work.server.status?.operation?.step ?? 'reserved',
  waitFor: 'the disk of the server to be known',
  waitSeconds: 1,
})

/** The turn as the flow of a move sees it. The server must be whole. */
export function movingTo(work: Work, target: NonNullable<Moving['claims']['target']>): Moving {
  const {
    server,
    seen: { claims, storage, instance: source, targetInstance },
  } = work
  if (claims === undefined || storage === undefined) throw new Error('a server that is not whole cannot move')
  const { operationId: moveId, node: targetNode } = target
  const sourceNode = claims.placement.node
  const written = writtenMove(server, moveId)
  const fresh: Moving['written'] = {
    operationId: moveId,
    state: 'reserved',
    sourceNode,
    targetNode,
    phase: '',
    attempt: 1,
    iteration: 0,
    transferredBytes: 0,
    totalBytes: 0,
    dirtyBytesPerSecond: 0,
    downtimeMilliseconds: 0,
    detail: '',
  }
  return {
    ...work,
    claims,
    storage,
    moveId,
    sourceNode,
    targetNode,
    source,
    target: targetInstance,
    written: written?.targetNode === targetNode ? written : fresh,
  }
}

const writeDown = (moving: Moving): Decision =>
  inState(moving, 'reserved', {
    events: [
      {
        kind: 'target_chosen',
        message: `The server goes to node ${moving.targetNode}.`,
        data: { node_id: moving.targetNode },
      },
    ],
    waitSeconds: 0,
    waitFor: 'the next look',
  })

/** Asked once for each generation: a zone without room now is asked again by whoever wants the move. */
const refusal = ({ server }: Work): string | undefined => refusalOf(server, RESERVED)?.message

function reserve({ server, seen: { accountId, plan, storage }, operation }: Work): Action {
  const { target_node_id: node, target_zone: zone } = operation.arguments ?? {}
  const input = {
    accountId,
    serverId: server.metadata.name,
    operationId: operation.id,
    ...(plan?.cpuPool === undefined ? {} : { cpuPool: plan.cpuPool }),
    ...(node === undefined ? {} : { node }),
    // In another zone the disk is copied, wherever it lies.
    ...(zone !== undefined ? { zone } : storage?.status?.pool === undefined ? {} : { pool: storage.status.pool }),
  }
  return { do: 'effect', name: 'reserve', input }
}
