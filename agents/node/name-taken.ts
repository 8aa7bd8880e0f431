/** How the host reports that the name of an object is taken, or free again. */
import type { ConditionDraft } from '../../kit/reconcile/action.ts'
import { NAME_TAKEN } from '../../resources/instance/name-taken.ts'

export const NAME_FREE: ConditionDraft = { type: NAME_TAKEN, status: 'False', reason: 'Free', message: '' }

export const nameTaken = (message: string): ConditionDraft => ({
  type: NAME_TAKEN,
  status: 'True',
  reason: 'OtherUid',
  message,
})
