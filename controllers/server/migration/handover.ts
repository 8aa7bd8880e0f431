/** Receivers, and what is asked of one whose sender has let go of the guest. Between two words nothing is assumed,
 *  however long it takes. */
import type { Action } from '../../../kit/reconcile/action.ts'
import type { Decision } from '../decision.ts'
import { ensureInstance, moveKeyKey, powerOf } from '../drafts.ts'
import { inState, mirroredVolumes, type Moving, sentAttempt } from './input.ts'
import { present } from '../power/index.ts'
import type { InstanceObject } from '../observed.ts'

/** What comes, comes at once; after this the receiver is asked. */
const ARRIVAL_SECONDS = 10

/** The target waits for the guest, for the attempt. Free when it does. */
export function receiver(
  { server, seen, claims, storage, target, targetNode, moveId }: Moving,
  source: InstanceObject,
  attempt: number,
): readonly Action[] {
  const { power, incarnation, operationId } = powerOf(source)
  const receive = {
    id: moveId,
    attempt,
    mirroredVolumes: mirroredVolumes(storage),
    secretName: moveKeyKey(server, targetNode).name,
  }
  return present(
    ensureInstance(
      server,
      seen,
      claims,
      storage,
      { power, incarnation, operationId, receive },
      { node: targetNode, instance: target },
    ),
  )
}

/** The guest has left and has not arrived. A receiver that has got nothing is told of another attempt: either it says
 *  that the guest runs there,
 *  or it throws away what it had and says so; the guest can never come after that. */
export function awaitArrival(moving: Moving): Decision {
  const { source, target, targetNode, now, written } = moving
  const leftAt = Date.parse(source?.status?.transfer?.reportedAt ?? '')
  const isAsked =
    source !== undefined &&
    now.getTime() >= leftAt + ARRIVAL_SECONDS * 1_000 &&
    target?.spec.receive?.attempt === sentAttempt(moving)
  return inState(moving, written.state === 'aborting' ? 'aborting' : 'sending', {
    actions: isAsked ? receiver(moving, source, sentAttempt(moving) + 1) : [],
    waitFor: `node ${targetNode} to take the guest over`,
    waitSeconds: ARRIVAL_SECONDS,
  })
}
