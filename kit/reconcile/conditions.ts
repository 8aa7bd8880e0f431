/** Conditions as specified in KEP-1623. */
import { defined } from '../../domain/defined.ts'
import { toSeconds } from '../sys/clock.ts'
import type { ConditionDraft } from './action.ts'

export interface KeptCondition extends ConditionDraft {
  readonly lastTransitionTime: string
  readonly observedGeneration?: number
}

/** The drafts merged into the existing conditions, by type and in the order of first appearance. lastTransitionTime
 *  changes with status only. */
export function mergeConditions(
  previous: readonly KeptCondition[],
  drafts: readonly ConditionDraft[],
  at: { readonly generation: number | undefined; readonly now: Date },
): KeptCondition[] {
  const byType = new Map(previous.map((condition) => [condition.type, condition]))
  for (const { type, status, reason, message } of drafts) {
    const before = byType.get(type)
    byType.set(type, {
      type,
      status,
      reason,
      message,
      lastTransitionTime: before?.status === status ? before.lastTransitionTime : toSeconds(at.now),
      ...defined({ observedGeneration: at.generation }),
    })
  }
  return [...byType.values()]
}
