/** Requests for larger quotas: what may be requested, and the progress of a request. */
import { conflict, Problem } from '../problem.ts'

/** `open` waits for staff; `declined` has their reason; the account itself withdrew a `withdrawn` one. */
export const QUOTA_REQUEST_STATES = ['open', 'in_review', 'granted', 'declined', 'withdrawn'] as const
export type QuotaRequestState = (typeof QUOTA_REQUEST_STATES)[number]

/** States in which staff have not decided. */
export const UNDECIDED_STATES: readonly QuotaRequestState[] = ['open', 'in_review']
/** Undecided requests of an account, each for another quota. */
export const UNDECIDED_MAXIMUM = 5
export const REASON_LENGTH_MAXIMUM = 2_000
/** Beyond every quota of an account; in GiB or MiB it is a petabyte. */
export const LIMIT_MAXIMUM = 2 ** 30

/** Throws 422 unless the limit is larger than the one that the account has. */
export function requireLarger(limit: number, current: number): void {
  if (limit > current) return
  const detail = `must be larger than the present limit of ${current}`
  throw new Problem(422, `limit: ${detail}.`, { errors: [{ field: 'limit', detail }] })
}

/** The states from which a request may change to each state. */
const STEPS: Readonly<Record<Exclude<QuotaRequestState, 'open'>, readonly QuotaRequestState[]>> = {
  in_review: ['open'],
  granted: ['in_review'],
  declined: UNDECIDED_STATES,
  withdrawn: UNDECIDED_STATES,
}
const STEP_NAMES = {
  in_review: 'reviewed',
  granted: 'granted before it is reviewed',
  declined: 'declined now',
  withdrawn: 'withdrawn now',
} as const

/** Throws 409 unless the request may change to that state now. */
export function requireStep(before: QuotaRequestState, after: keyof typeof STEPS): void {
  if (!STEPS[after].includes(before))
    throw conflict(
      'state_not_allowed',
      `The request is ${before.replace('_', ' ')}: it cannot be ${STEP_NAMES[after]}.`,
    )
}
