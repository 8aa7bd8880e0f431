/** Webhooks: which events there are, which of them a pattern selects, how often a delivery is attempted, and when a
 *  webhook is paused. Pure. */
import { createHash } from 'node:crypto'
import { ACCOUNT_NOUNS, type AccountNoun } from '../account/quota.ts'
import { badField, conflict } from '../problem.ts'
import { parseAddress } from '../network/addresses.ts'
import { isPublicAddress } from '../network/public-address.ts'

/** Types of resources that events are about. */
export const EVENT_RESOURCES = ACCOUNT_NOUNS
export type EventResource = AccountNoun

/** Those whose state is an event. */
export const STATE_RESOURCES = [
  'server',
  'storage',
  'snapshot',
  'backup',
  'custom_image',
  'edge',
  'playground',
] as const

export const TEST_EVENT = 'webhook.test'
/** Types of events that are about no single type of resource. */
const OTHER_EVENTS = ['operation.finished', 'audit.entry', 'billing.standing'] as const

const EVENT_TYPES: readonly string[] = [
  ...EVENT_RESOURCES.flatMap((type) => ['created', 'changed', 'deleted'].map((what) => `${type}.${what}`)),
  ...STATE_RESOURCES.map((type) => `${type}.state`),
  ...OTHER_EVENTS,
]

/** A type of event, or part of one with `*` for the rest. */
export const EVENT_PATTERN = /^(\*|(\*|[a-z][a-z0-9_]*)\.(\*|[a-z][a-z0-9_]*))$/
export const EVENT_PATTERNS_MAXIMUM = 50
export const EVENT_PATTERN_LENGTH_MAXIMUM = 64
export const URL_LENGTH_MAXIMUM = 2_048

/** Events that need the permission `billing.read`: a `*` never selects them. */
const isOfBilling = (type: string): boolean => type.startsWith('billing.')

/** Whether the pattern selects events of the type. */
export function selects(pattern: string, type: string): boolean {
  const [noun = '', verb = '*'] = pattern.split('.')
  const [ofNoun = '', ofVerb = ''] = type.split('.')
  if (noun === '*' && isOfBilling(type)) return false
  return (noun === '*' || noun === ofNoun) && (verb === '*' || verb === ofVerb)
}

/** Whether a webhook with the patterns is sent events of the type: tests are sent to any. */
export const sendsEvent = (patterns: readonly string[], type: string): boolean =>
  type === TEST_EVENT || patterns.some((pattern) => selects(pattern, type))

/** Whether the patterns select events that only readers of bills may see. */
export const selectsBilling = (patterns: readonly string[]): boolean => patterns.some(isOfBilling)

/** Throws 400 for an address that nothing is ever sent to. Names are resolved when something is sent, and their
 *  addresses checked then. */
export function requirePublicUrl(url: string): void {
  const parsed = URL.parse(url)
  if (parsed === null) throw badField('url', 'must be a URL')
  if (parsed.protocol !== 'https:') throw badField('url', 'must start with https://')
  if (parsed.username !== '' || parsed.password !== '') throw badField('url', 'must not contain credentials')
  if (parsed.hash !== '') throw badField('url', 'must not have a fragment')
  const host = parsed.hostname.replace(/^\[|\]$/g, '')
  if (parseAddress(host) !== undefined && !isPublicAddress(host)) throw badField('url', 'must be at a public address')
}

/** The same, and throws 400 for a pattern that selects no event. */
export function requireUsable({ url, events }: { readonly url: string; readonly events: readonly string[] }): void {
  requirePublicUrl(url)
  for (const [index, pattern] of events.entries())
    if (!EVENT_TYPES.some((type) => selects(pattern, type)))
      throw badField(`events.${index}`, `there are no events ${pattern}`)
}

/** Throws 409 while it is being deleted. */
export function requireLive(isDeleting: boolean, id: string): void {
  if (!isDeleting) return
  throw conflict('state_not_allowed', 'The webhook is being deleted.', { resource: { type: 'webhook', id } })
}

/** The id of an event that follows from its source: whoever finds the event again makes the same one. */
export const eventIdOf = (source: string, type: string): string =>
  `evt-${createHash('sha256').update(`${type} ${source}`).digest('hex').slice(0, 32)}`

/** Seconds after a failed attempt, the first of them after the first attempt: three days altogether. */
export const RETRY_SECONDS = [5, 60, 300, 1_800, 7_200, 18_000, 28_800, 43_200, 72_000, 86_400] as const
const SPREAD = 0.1

/** When it is attempted again after so many failures, in milliseconds; undefined when it is given up. `fraction` is in
 *  [0, 1): receivers that failed together are not called together. */
export function retryAfterMilliseconds(failures: number, fraction: number): number | undefined {
  const seconds = RETRY_SECONDS[failures - 1]
  return seconds === undefined ? undefined : seconds * 1_000 * (1 + SPREAD * (fraction - 1 / 2))
}

/** A webhook whose deliveries have all failed for so long is paused. */
export const PAUSE_AFTER_MILLISECONDS = 3 * 86_400_000
/** The receiver says that it wants no more (410 Gone). */
export const HTTP_GONE = 410
export const isDelivered = (status: number): boolean => status >= 200 && status < 300

/** Maximum of deliveries in progress for one webhook: a slow receiver delays its own events only. */
export const DELIVERIES_AT_ONCE_MAXIMUM = 4
/** Maximum over all webhooks of an account: slow receivers delay other accounts less still. */
export const ACCOUNT_DELIVERIES_AT_ONCE_MAXIMUM = 16
/** Maximum of deliveries of one webhook that wait; later ones fail at once and can be sent again by hand. */
export const PENDING_MAXIMUM = 10_000
/** The log of a webhook: number and age of deliveries that have ended. */
export const LOG_DELIVERIES_MAXIMUM = 1_000
export const LOG_MILLISECONDS = 14 * 86_400_000
/** Largest body that is sent; a larger event is sent without its data. */
export const BODY_BYTES_MAXIMUM = 262_144

/** What an accepted request did to a resource, by the verb of its action in the audit log. */
const CREATING: readonly string[] = ['create', 'allocate', 'copy', 'enable', 'start']
const DELETING: readonly string[] = ['delete', 'release', 'end']

/** Answers `created`, `deleted` or `changed` for an action such as `floating_ip.allocate`. Starting a server creates
 *  nothing: only what has no `create` is created by `start`. */
export function effectOf(action: string): 'created' | 'changed' | 'deleted' {
  const [noun = '', verb = ''] = action.split('.')
  if (verb === 'start' && noun !== 'playground') return 'changed'
  return CREATING.includes(verb) ? 'created' : DELETING.includes(verb) ? 'deleted' : 'changed'
}

export const isEventResource = (type: string): type is EventResource => EVENT_RESOURCES.some((known) => known === type)

/** Whether events are sent to a webhook now. One without a secret sends nothing: it was created by kubectl, or its row
 *  was lost, and only who rotates its secret knows one. */
export const deliveryStateOf = ({
  enabled,
  hasSecret,
  pausedAt,
}: {
  readonly enabled: boolean
  readonly hasSecret: boolean
  readonly pausedAt: Date | null
}): 'active' | 'disabled' | 'no_secret' | 'paused' =>
  !hasSecret ? 'no_secret' : !enabled ? 'disabled' : pausedAt === null ? 'active' : 'paused'

/** What its owner has to do. */
export const NO_SECRET_REASON = 'It has no secret: nothing is sent until its secret is rotated.'
