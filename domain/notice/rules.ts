/** What a person should know about an account: computed from the state of things, never stored. Pure.
 *  Invariant: the id of a notice follows from its cause alone. A dismissal holds while the cause is the same, and a new
 *  cause is a new notice. */
import { createHash } from 'node:crypto'

export const NOTICE_KINDS = [
  'standing',
  'maintenance',
  'certificate_expiry',
  'token_expiry',
  'credit_expiry',
  'quota_near',
  'email_unverified',
] as const
export type NoticeKind = (typeof NOTICE_KINDS)[number]

/** In the order of lists. */
export const NOTICE_SEVERITIES = ['critical', 'warning', 'info'] as const
export type NoticeSeverity = (typeof NOTICE_SEVERITIES)[number]

export interface Notice {
  readonly id: string
  readonly kind: NoticeKind
  readonly severity: NoticeSeverity
  readonly message: string
  readonly resource: { readonly type: string; readonly id: string; readonly name: string } | null
  /** When it takes effect; null when it does already. */
  readonly at: Date | null
}

const DAY_MILLISECONDS = 86_400_000
/** How long before their expiry people learn of it. */
const DAYS_AHEAD = { certificate: 30, token: 14, credit: 14 } as const
/** An expiry this close cannot wait. */
const URGENT_DAYS = 3
/** Of each kind; the earliest first. */
export const NOTICES_OF_KIND_MAXIMUM = 50

/** Until when an expiry is announced now. */
export const announcedUntil = (what: keyof typeof DAYS_AHEAD, now: Date): Date =>
  new Date(now.getTime() + DAYS_AHEAD[what] * DAY_MILLISECONDS)

const ID_CHARACTERS = 24

/** Made of the causes, which must not change while the notice is about the same thing. */
const idOf = (kind: NoticeKind, ...causes: readonly string[]): string => {
  const hash = createHash('sha256').update(JSON.stringify(causes)).digest('hex')
  return `${kind.replaceAll('_', '-')}-${hash.slice(0, ID_CHARACTERS)}`
}

const severityAt = (at: Date, now: Date): NoticeSeverity =>
  at.getTime() - now.getTime() < URGENT_DAYS * DAY_MILLISECONDS ? 'critical' : 'warning'

/** What the notices are made of: one list for each kind. Parts that the caller may not read are empty. */
export interface NoticeFacts {
  /** Why the account may not create billable resources, and since when; null when it may. */
  readonly standing: { readonly reason: keyof typeof STANDING_MESSAGES; readonly since: Date | null } | null
  readonly maintenance: readonly {
    readonly serverId: string
    readonly hostname: string
    readonly plannedAt: Date
    readonly reason: string
    readonly action: 'live' | 'cold'
  }[]
  readonly certificates: readonly {
    readonly type: 'load_balancer' | 'database'
    readonly id: string
    readonly name: string
    /** Identifies the certificate among those of the resource. */
    readonly certificate: string
    readonly expiresAt: Date
  }[]
  readonly tokens: readonly { readonly id: string; readonly name: string; readonly expiresAt: Date }[]
  readonly credits: readonly { readonly id: string; readonly leftCents: number; readonly expiresAt: Date }[]
  readonly quotas: readonly { readonly name: string; readonly limit: number; readonly used: number }[]
  /** The address of the caller that is to be confirmed; null when there is none. */
  readonly unverifiedEmail: string | null
}

const STANDING_MESSAGES = {
  payment_method_required: 'The account has no payment method and no credit: nothing that costs can be created.',
  owner_approval_required: 'The owner has to approve paid usage: nothing that costs can be created.',
  account_suspended: 'The account is suspended: nothing that costs can be created. What runs keeps running.',
} as const

/** The most urgent first. */
export function noticesOf(facts: NoticeFacts, now: Date): readonly Notice[] {
  const all = [
    ...standingNotices(facts),
    ...facts.maintenance.map(maintenanceNotice),
    ...facts.certificates
      .filter(({ expiresAt }) => expiresAt < announcedUntil('certificate', now))
      .map((certificate) => certificateNotice(certificate, now)),
    ...facts.tokens
      .filter(({ expiresAt }) => expiresAt > now && expiresAt < announcedUntil('token', now))
      .map((token) => tokenNotice(token, now)),
    ...facts.credits
      .filter(({ expiresAt }) => expiresAt > now && expiresAt < announcedUntil('credit', now))
      .map((credit) => creditNotice(credit, now)),
    ...facts.quotas.map(quotaNotice),
    ...emailNotices(facts),
  ]
  return NOTICE_KINDS.flatMap((kind) =>
    all
      .filter((notice) => notice.kind === kind)
      .toSorted(byTime)
      .slice(0, NOTICES_OF_KIND_MAXIMUM),
  ).toSorted(
    (one, other) =>
      NOTICE_SEVERITIES.indexOf(one.severity) - NOTICE_SEVERITIES.indexOf(other.severity) || byTime(one, other),
  )
}

const byTime = (one: Notice, other: Notice): number => (one.at?.getTime() ?? 0) - (other.at?.getTime() ?? 0)

const standingNotices = ({ standing }: NoticeFacts): readonly Notice[] =>
  standing === null
    ? []
    : [
        {
          id: idOf('standing', standing.reason, standing.since?.toISOString() ?? ''),
          kind: 'standing',
          severity: 'critical',
          message: STANDING_MESSAGES[standing.reason],
          resource: null,
          at: null,
        },
      ]

const maintenanceNotice = (work: NoticeFacts['maintenance'][number]): Notice => ({
  id: idOf('maintenance', work.serverId, work.plannedAt.toISOString()),
  kind: 'maintenance',
  severity: work.action === 'cold' ? 'warning' : 'info',
  message: `The server moves to another host${work.action === 'cold' ? ' and may restart' : ''}: ${work.reason}`,
  resource: { type: 'server', id: work.serverId, name: work.hostname },
  at: work.plannedAt,
})

const certificateNotice = (
  { type, id, name, certificate, expiresAt }: NoticeFacts['certificates'][number],
  now: Date,
): Notice => ({
  id: idOf('certificate_expiry', type, id, certificate, expiresAt.toISOString()),
  kind: 'certificate_expiry',
  severity: severityAt(expiresAt, now),
  message: `The certificate "${certificate}" ${expiresAt > now ? 'expires soon' : 'has expired'}.`,
  resource: { type, id, name },
  at: expiresAt,
})

const tokenNotice = ({ id, name, expiresAt }: NoticeFacts['tokens'][number], now: Date): Notice => ({
  id: idOf('token_expiry', id, expiresAt.toISOString()),
  kind: 'token_expiry',
  severity: severityAt(expiresAt, now),
  message: `Your API token "${name}" expires soon.`,
  resource: { type: 'api_token', id, name },
  at: expiresAt,
})

const CENTS = 100

const creditNotice = ({ id, leftCents, expiresAt }: NoticeFacts['credits'][number], now: Date): Notice => ({
  id: idOf('credit_expiry', id, expiresAt.toISOString()),
  kind: 'credit_expiry',
  severity: severityAt(expiresAt, now),
  message: `EUR ${(leftCents / CENTS).toFixed(2)} of credit expire soon.`,
  resource: null,
  at: expiresAt,
})

/** Another limit, and a quota that is used up now, is another notice. */
const quotaNotice = ({ name, limit, used }: NoticeFacts['quotas'][number]): Notice => {
  const isUsedUp = used >= limit
  return {
    id: idOf('quota_near', name, String(limit), isUsedUp ? 'used up' : 'near'),
    kind: 'quota_near',
    severity: isUsedUp ? 'warning' : 'info',
    message: isUsedUp ? `The quota "${name}" is used up.` : `The quota "${name}" is nearly used up.`,
    resource: { type: 'quota', id: name, name },
    at: null,
  }
}

const emailNotices = ({ unverifiedEmail }: NoticeFacts): readonly Notice[] =>
  unverifiedEmail === null
    ? []
    : [
        {
          id: idOf('email_unverified', unverifiedEmail),
          kind: 'email_unverified',
          severity: 'warning',
          message: 'Your email address is not confirmed: some requests are refused until it is.',
          resource: null,
          at: null,
        },
      ]
