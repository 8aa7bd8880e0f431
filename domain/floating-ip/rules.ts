/** Floating IPs: their targets, and the changes that their state allows. Pure. */
import { conflict, operationInProgress } from '../problem.ts'

export type FloatingTarget = { readonly kind: 'public' } | { readonly kind: 'private'; readonly networkId: string }

const PRIVATE = 'private:'
export const TARGET_PATTERN = /^(public|private:[a-z0-9]([-a-z0-9.]*[a-z0-9])?)$/

/** Parses a text that `TARGET_PATTERN` matches. */
export const parseTarget = (text: string): FloatingTarget =>
  text.startsWith(PRIVATE) ? { kind: 'private', networkId: text.slice(PRIVATE.length) } : { kind: 'public' }

export interface FloatingIpFacts {
  readonly id: string
  readonly isAssigned: boolean
  readonly isDeleting: boolean
  readonly activeOperation: { readonly id: string } | undefined
}

const resourceOf = ({ id }: FloatingIpFacts) => ({ type: 'floating_ip', id })

/** Throws 409 while another change runs. */
export function requireAssignable(facts: FloatingIpFacts): void {
  if (facts.activeOperation !== undefined) throw operationInProgress(facts.activeOperation.id, resourceOf(facts))
  if (facts.isDeleting)
    throw conflict('state_not_allowed', 'The floating IP is being released.', { resource: resourceOf(facts) })
}

/** Throws 409 while another change runs, and while it is assigned to a server. */
export function requireReleasable(facts: FloatingIpFacts): void {
  requireAssignable(facts)
  if (facts.isAssigned)
    throw conflict('in_use', 'The floating IP is assigned to a server. Unassign it first.', {
      resource: resourceOf(facts),
    })
}
