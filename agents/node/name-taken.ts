/** The object has the name of something on the host that was created for an object with another uid. What is on the
 *  host stays, and the condition reports it. */
import type { ConditionDraft } from '../../kit/reconcile/action.ts'

export const NAME_TAKEN = 'NameTaken'

export const NAME_FREE: ConditionDraft = { type: NAME_TAKEN, status: 'False', reason: 'Free', message: '' }

export const nameTaken = (message: string): ConditionDraft => ({
  type: NAME_TAKEN,
  status: 'True',
  reason: 'OtherUid',
  message,
})

export const isNameTaken = (
  conditions: readonly { readonly type: string; readonly status: string }[] | undefined,
): boolean => conditions?.some(({ type, status }) => type === NAME_TAKEN && status === 'True') === true
