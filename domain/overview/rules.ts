/** What a person should see first: which resources need attention, and which quotas are nearly used up. Pure. */
import type { QuotaName } from '../account/quota.ts'

/** The fields of the public shapes that say how a resource is. Each shape has some of them. */
export interface ResourceView {
  readonly id: string
  readonly hostname?: string
  readonly name?: string
  readonly title?: string
  readonly address?: string
  readonly state?: string
  readonly state_detail?: string
  readonly is_healthy?: boolean
  readonly health_detail?: string
  readonly health?: { readonly api_server: string; readonly detail: string }
  readonly failure_reason?: string | null
  readonly verification_error?: string | null | undefined
  readonly backups?: { readonly archive_failure: string }
  readonly active_operation?: object | null
}

/** The name by which people know it. */
export const nameOf = ({ hostname, name, title, address, id }: ResourceView): string =>
  [hostname, name, title, address].find((text) => text !== undefined && text !== '') ?? id

/** States of which nobody expects that anything works yet, or any longer. */
const UNFINISHED: readonly (string | undefined)[] = ['creating', 'deleting', 'deleted']

/** Why the resource needs attention; undefined when it does not. While a change is in progress, nothing but the state
 *  `error` counts. */
export function problemOf(shown: ResourceView): string | undefined {
  const { state, active_operation: operation = null } = shown
  if (state === 'error') return textOf(shown, 'It is in the state error.')
  if (UNFINISHED.includes(state)) return undefined
  const isDown = shown.is_healthy === false || shown.health?.api_server === 'unhealthy'
  if (isDown && operation === null) return textOf(shown, 'It is not healthy.')
  if ((shown.verification_error ?? '') !== '') return shown.verification_error ?? undefined
  if (shown.backups !== undefined && shown.backups.archive_failure !== '') return shown.backups.archive_failure
  return undefined
}

const textOf = ({ state_detail, failure_reason, health_detail, health }: ResourceView, otherwise: string): string =>
  [state_detail, failure_reason, health_detail, health?.detail].find((text) => text !== undefined && !isEmpty(text)) ??
  otherwise
const isEmpty = (text: string | null): boolean => text === null || text === ''

/** Counts everything that the account ever had: nothing can be done about its use. */
const LIFETIME_QUOTA: QuotaName = 'playgrounds'
const NEAR_PERCENT = 80

/** Whether four fifths of the quota are used. */
export const isQuotaNear = (quota: { readonly name: string; readonly limit: number; readonly used: number }): boolean =>
  quota.name !== LIFETIME_QUOTA && quota.used > 0 && quota.used * 100 >= quota.limit * NEAR_PERCENT
