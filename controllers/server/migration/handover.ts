/** Receivers, and what is asked of one whose sender has let go of the guest. Between two words nothing is assumed,
 *  however long it takes. */
import type { ServerAction } from '../actions.ts'
import type { Decision } from '../decision.ts'
import { ensureInstance, migrationKeyKey, powerOf } from '../drafts.ts'
import { inState, mirroredVolumes, type MigrationInput, sentAttempt } from './input.ts'
import { present } from '../../operation/decision.ts'
import type { InstanceObject } from '../observed.ts'

/** What comes, comes at once; after this the receiver is asked. */
const ARRIVAL_SECONDS = 10

/** The target waits for the guest, for the attempt. Free when it does. */
export function prepareReceiver(
  { server, observed, claims, storage, target, targetNode, migrationId }: MigrationInput,
  source: InstanceObject,
  attempt: number,
): readonly ServerAction[] {
  const { power, incarnation, operationId } = powerOf(source)
  const receive = {
    id: migrationId,
    attempt,
    mirroredVolumes: mirroredVolumes(storage),
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

/** The guest has left and has not arrived. A receiver that has got nothing is told of another attempt: either it says
 *  that the guest runs there, or it throws away what it had and says so; the guest can never come after that. */
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
