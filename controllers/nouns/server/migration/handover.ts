/** Preparing receivers, and waiting for a receiver after its sender has handed the guest over. Only the nodes' reports
 *  count: no timeout decides where the guest is. */
import type { ServerAction } from '../actions.ts'
import type { Decision } from '../decision.ts'
import { ensureInstance, migrationKeyKey, powerOf } from '../drafts.ts'
import { inState, mirroredVolumes, type MigrationInput, sentAttempt } from './input.ts'
import { present } from '../../../kit/operation/decision.ts'
import type { InstanceObject } from '../observed.ts'

/** A guest that was handed over arrives at once; after this long the receiver is asked for it. */
const ARRIVAL_SECONDS = 10

/** Orders the target to wait for this attempt's guest. Idempotent. */
export function prepareReceiver(
  { server, observed, claims, storage, target, targetNode, migrationId }: MigrationInput,
  source: InstanceObject,
  attempt: number,
): readonly ServerAction[] {
  const { power, incarnation, operationId } = powerOf(source)
  const receive = {
    id: migrationId,
    attempt,
    mirroredVolumes: mirroredVolumes({ storage, observed }),
    secretName: migrationKeyKey(server, targetNode).name,
  }
  return present(
    ensureInstance(
      server,
      observed,
      claims,
      storage,
      { power, incarnation, operationId, receive },
      { node: targetNode, instance: target },
    ),
  )
}

/** The guest has left the source and has not arrived. Ordering the receiver to prepare another attempt makes it either
 *  report that the guest runs there, or discard this attempt and report that. After that the guest cannot arrive. */
export function awaitArrival(input: MigrationInput): Decision {
  const { source, target, targetNode, now, recorded } = input
  const leftAt = Date.parse(source?.status?.transfer?.reportedAt ?? '')
  const isAsked =
    source !== undefined &&
    now.getTime() >= leftAt + ARRIVAL_SECONDS * 1_000 &&
    target?.spec.receive?.attempt === sentAttempt(input)
  return inState(input, recorded.state === 'aborting' ? 'aborting' : 'sending', {
    actions: isAsked ? prepareReceiver(input, source, sentAttempt(input) + 1) : [],
    waitFor: `node ${targetNode} to take the guest over`,
    waitSeconds: ARRIVAL_SECONDS,
  })
}
