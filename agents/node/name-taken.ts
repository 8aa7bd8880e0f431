/** An object of the same name, and another uid, as the one that something on the host was made for: what is here stays,
 *  and the condition says so. */
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
