/** Playgrounds: free Kubernetes clusters of a few hours, one at a time, each a control plane and one guest. Their
 *  resources and duration, and who may start one. */
import { conflict, forbidden, Problem, unavailable } from '../problem.ts'

export const PLAYGROUND_STATES = ['provisioning', 'ready', 'deleting', 'deleted'] as const
export type PlaygroundState = (typeof PLAYGROUND_STATES)[number]
export const END_REASONS = ['expired', 'deleted', 'ended_by_staff', 'failed'] as const
export type EndReason = (typeof END_REASONS)[number]
export const ELIGIBILITIES = [
  'eligible',
  'unavailable',
  'active_playground',
  'allowance_used',
  'account_suspended',
] as const
export type Eligibility = (typeof ELIGIBILITIES)[number]

export const LIFETIME_HOURS = 4
/** A playground that is not ready by then has failed, and does not count against its account's allowance. */
export const PROVISIONING_MINUTES = 15
/** Resources for workloads. The guest is larger, for the platform's own programs. */
export const PLAYGROUND_LIMITS = {
  vcpus: 2,
  memoryMebibytes: 1_024,
  storageGibibytes: 4,
  pods: 24,
  volumes: 4,
} as const
/** Ranges of pods and of services; a playground's network contains nothing else. */
export const PLAYGROUND_RANGES = { pods: '10.244.0.0/16', services: '10.96.0.0/16' } as const

/** The values that are decided when a playground is started. */
export interface NewPlayground {
  readonly id: string
  /** Unique everywhere. */
  readonly name: string
  readonly region: string
  readonly controlPlaneId: string
  readonly release: string
  readonly appDomain: string
  readonly createdAt: Date
  readonly expiresAt: Date
}

const NAME_DIGITS = 10
const HOUR_MILLISECONDS = 3_600_000
const MINUTE_MILLISECONDS = 60_000

/** `digits`: ten random hexadecimal digits, or more; `domain`: the parent domain of Ingresses of its host. */
export function newPlayground(
  draft: Pick<NewPlayground, 'id' | 'region' | 'controlPlaneId' | 'release'>,
  { digits, domain, now }: { readonly digits: string; readonly domain: string; readonly now: Date },
): NewPlayground {
  const name = `pg-${digits.slice(0, NAME_DIGITS)}`
  const expiresAt = new Date(now.getTime() + LIFETIME_HOURS * HOUR_MILLISECONDS)
  return { ...draft, name, appDomain: `*.${name}.${domain}`, createdAt: now, expiresAt }
}

export const hasTakenTooLong = (createdAt: Date, now: Date): boolean =>
  now.getTime() - createdAt.getTime() > PROVISIONING_MINUTES * MINUTE_MILLISECONDS

export interface PlaygroundFacts {
  readonly readyAt: Date | null
  readonly endedAt: Date | null
  readonly deletedAt: Date | null
  readonly expiresAt: Date
}

/** Also judged by the clock: a playground whose time is over is ending, even if nothing has noticed it yet. */
export function playgroundStateOf(
  { readyAt, endedAt, deletedAt, expiresAt }: PlaygroundFacts,
  now: Date,
): PlaygroundState {
  if (deletedAt !== null) return 'deleted'
  if (endedAt !== null || expiresAt <= now) return 'deleting'
  return readyAt === null ? 'provisioning' : 'ready'
}

export interface EligibilityFacts {
  readonly isOffered: boolean
  readonly isSuspended: boolean
  readonly hasActive: boolean
  readonly allowance: number
  readonly allowanceUsed: number
}

/** The first obstacle. */
export function eligibilityOf(facts: EligibilityFacts): Eligibility {
  if (!facts.isOffered) return 'unavailable'
  if (facts.isSuspended) return 'account_suspended'
  if (facts.hasActive) return 'active_playground'
  return facts.allowanceUsed >= facts.allowance ? 'allowance_used' : 'eligible'
}

/** Why one cannot be started; undefined when one can. `obstacle`: why none are offered, for people. */
export function playgroundRefusal(eligibility: Eligibility, obstacle: string): Problem | undefined {
  switch (eligibility) {
    case 'eligible':
      return undefined
    case 'unavailable':
      return unavailable('not_configured', `No playgrounds are offered: ${obstacle}.`)
    case 'account_suspended':
      return forbidden('The account is suspended: pay the overdue invoice, or contact support.', 'account_suspended')
    case 'active_playground':
      return conflict('state_not_allowed', 'The account has a playground. End it first.')
    case 'allowance_used':
      return forbidden('The account has used its free playgrounds.', 'allowance_used')
  }
}

/** Throws 409 for a playground that is ending. */
export function requireEndable(facts: PlaygroundFacts, now: Date): void {
  if (['deleting', 'deleted'].includes(playgroundStateOf(facts, now)))
    throw conflict('state_not_allowed', 'The playground has ended already.')
}

/** Throws 409 for a playground that is not ready. */
export function requireReady(facts: PlaygroundFacts, now: Date): void {
  const state = playgroundStateOf(facts, now)
  if (state !== 'ready')
    throw conflict(
      'state_not_allowed',
      state === 'provisioning' ? 'The playground is still being made.' : 'The playground has ended.',
    )
}
