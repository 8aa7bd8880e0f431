/** What a server's state allows: one rule per verb, the same for every door. Refusals come in the contract's order:
 *  operation_in_progress, protected, server_not_stopped, in_use, state_not_allowed. */
import { conflict, operationInProgress, Problem } from './problem.ts'
import type { OperationKind } from './operations.ts'

export interface ServerFacts {
  readonly id: string
  readonly state: 'creating' | 'starting' | 'started' | 'stopping' | 'stopped' | 'deleting' | 'error'
  readonly isProtected: boolean
  /** The object itself is going away, whoever asked for it. */
  readonly isDeleting: boolean
  readonly activeOperation: { readonly id: string; readonly kind: OperationKind } | undefined
}

const referenceOf = ({ id }: ServerFacts) => ({ type: 'server', id })

/** Throws 409 while another change runs. */
export function requireIdle(server: ServerFacts): void {
  if (server.activeOperation !== undefined) throw operationInProgress(server.activeOperation.id, referenceOf(server))
  if (server.isDeleting || server.state === 'deleting') throw stateNotAllowed(server, 'The server is being deleted.')
}

/** Throws 409 unless the server can be started. */
export function requireStartable(server: ServerFacts): void {
  requireIdle(server)
  if (server.state !== 'stopped' && server.state !== 'error') throw stateNotAllowed(server, `The server is ${server.state}; only a stopped server can be started.`)
}

/** Throws 409 unless the server can be stopped or restarted. */
export function requireStoppable(server: ServerFacts): void {
  requireIdle(server)
  if (server.state !== 'started') throw stateNotAllowed(server, `The server is ${server.state}; only a started server can be stopped or restarted.`)
}

/** Throws 409 unless the server can be deleted. One that is still being made can: its creation is cancelled. */
export function requireDeletable(server: ServerFacts): void {
  if (server.activeOperation?.kind !== 'server.create') requireIdle(server)
  else if (server.isDeleting) throw stateNotAllowed(server, 'The server is being deleted.')
  if (server.isProtected) throw conflict('protected', 'The server is protected. Set is_protected to false first.', { resource: referenceOf(server) })
}

const stateNotAllowed = (server: ServerFacts, detail: string): Problem => conflict('state_not_allowed', detail, { resource: referenceOf(server) })
