/** Whether a current operation and a deletion allow a change of networks, routers, edges, node pools and object
 *  storages: the same for every interface. */
import { conflict, operationInProgress } from './problem.ts'

export interface IdleFacts {
  readonly id: string
  readonly isDeleting: boolean
  readonly activeOperation: { readonly id: string; readonly action: string | undefined } | undefined
}

type Noun = 'network' | 'router' | 'edge' | 'node_pool' | 'object_storage'

/** Throws 409 while an operation is under way. */
export function requireNoOperation(type: Noun, { id, activeOperation }: IdleFacts): void {
  if (activeOperation !== undefined) throw operationInProgress(activeOperation.id, { type, id })
}

/** Throws 409 while an operation is under way, and while it is being deleted: its claims may be released already. */
export function requireIdle(type: Noun, facts: IdleFacts): void {
  requireNoOperation(type, facts)
  if (!facts.isDeleting) return
  const resource = { type, id: facts.id }
  throw conflict('state_not_allowed', `The ${type.replace('_', ' ')} is being deleted.`, { resource })
}

/** Throws 409 while an operation is under way. A resource that is still being created can be deleted: its creation is
 *  cancelled. */
export function requireDeletable(type: Noun, facts: IdleFacts): void {
  if (facts.activeOperation?.action !== 'create') requireNoOperation(type, facts)
}
