/** Whether a server has the claims that it once had, and the condition that shows it. */
import type { ConditionDraft } from '../../../kit/reconcile/action.ts'
import { FORGOTTEN } from '../../../resources/server/index.ts'
import { grantedCondition } from '../../kit/refusal.ts'
import { CLAIMED } from './conditions.ts'
import { isDeleting, type Observed, type ServerObject } from './observed.ts'

interface Facts {
  readonly server: ServerObject
  readonly observed: Observed
}

export const FORGOTTEN_DETAIL =
  'The platform has no record of the name, the addresses and the room of the server. It can be stopped, started and ' +
  'deleted; the operators were informed.'

export const isForgotten = ({ server, observed }: Facts): boolean =>
  observed.claims === undefined && server.status?.macAddress !== undefined && !isDeleting(server)

export const forgottenCondition = ({ status }: ServerObject) =>
  status?.conditions?.find(({ type, reason }) => type === CLAIMED && reason === FORGOTTEN)

/** The condition is set as long as the claims are missing, and then cleared. */
export function claimedConditions(input: Facts): readonly ConditionDraft[] {
  if (isForgotten(input))
    return [{ type: CLAIMED, status: 'False', reason: FORGOTTEN, message: FORGOTTEN_DETAIL, isRefusal: true }]
  return input.observed.claims !== undefined && forgottenCondition(input.server) !== undefined
    ? (grantedCondition(CLAIMED).conditions ?? [])
    : []
}
