/** The conditions from which kstatus, and with it GitOps tools, determine health: Ready sums up; Reconciling and
 *  Stalled say why an object is not ready. */
import type { ConditionDraft } from '../../kit/reconcile/action.ts'

/** `ready`: as desired. `reconciling`: on its way there. `stalled`: it will not become ready without help. */
export type Health = 'ready' | 'reconciling' | 'stalled'

const TYPES = { Ready: 'ready', Reconciling: 'reconciling', Stalled: 'stalled' } as const

/** `reason` is one CamelCase word for programs, `message` is for people and may be empty. */
export const healthConditions = (health: Health, reason: string, message: string): ConditionDraft[] =>
  Object.entries(TYPES).map(([type, expectedHealth]) => ({
    type,
    status: health === expectedHealth ? 'True' : 'False',
    reason,
    message: type === 'Ready' || health === expectedHealth ? message : '',
  }))

/** `quota_exceeded` as `QuotaExceeded`, `server.create` as `ServerCreate`. */
export const toReason = (name: string): string =>
  name
    .split(/[._]/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('')
