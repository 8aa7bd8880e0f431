/** What the state of a private network or of a router allows: the same for every door. */
import { operationInProgress } from './problem.ts'

export interface NetworkFacts {
  readonly id: string
  readonly isDeleting: boolean
  readonly activeOperation: { readonly id: string; readonly action: string | undefined } | undefined
}

type Noun = 'network' | 'router'

/** Throws 409 while an operation is under way. */
export function requireIdleNetwork(type: Noun, { id, activeOperation }: NetworkFacts): void {
  if (activeOperation !== undefined) throw operationInProgress(activeOperation.id, { type, id })
}

/** Throws 409 while an operation is under way. What is still being made can be deleted: its creation is cancelled. */
export function requireDeletableNetwork(type: Noun, facts: NetworkFacts): void {
  if (facts.activeOperation?.action !== 'create') requireIdleNetwork(type, facts)
}
