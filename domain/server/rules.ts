/** Changes that a server's state allows: one rule per verb, the same for every interface. Refusals come in the
 *  contract's order: operation_in_progress, protected, server_not_stopped, in_use, state_not_allowed. */
import { conflict, operationInProgress, Problem, unavailable } from '../problem.ts'
import type { OperationKind } from '../operations.ts'

/** Its creation has failed: there is nothing to change. */
export const UNMADE = 'Creating the server did not finish. Delete it and create a new one.'

export interface ServerFacts {
  readonly id: string
  readonly state: 'creating' | 'starting' | 'started' | 'stopping' | 'stopped' | 'deleting' | 'error'
  readonly isProtected: boolean
  /** The object itself is being deleted, by any client. */
  readonly isDeleting: boolean
  /** Its host does not answer. */
  readonly isHostUnreachable: boolean
  /** The platform has lost its records of it; the guest may run. */
  readonly isForgotten?: boolean
  /** What it has now. */
  readonly plan: string
  /** Of its boot storage. */
  readonly storageGibibytes: number
  readonly activeOperation: { readonly id: string; readonly kind: OperationKind } | undefined
}

const referenceOf = ({ id }: ServerFacts) => ({ type: 'server', id })

/** Throws 409 while another change runs. */
export function requireIdle(server: ServerFacts): void {
  if (server.activeOperation !== undefined) throw operationInProgress(server.activeOperation.id, referenceOf(server))
  if (server.isDeleting || server.state === 'deleting') throw stateNotAllowed(server, 'The server is being deleted.')
}

/** Throws 409 unless the server can be started, and 503 while its host does not answer. */
export function requireStartable(server: ServerFacts): void {
  requireIdle(server)
  if (server.state !== 'stopped' && server.state !== 'error')
    throw stateNotAllowed(server, `The server is in state ${server.state}; only a stopped one can be started.`)
  requireHost(server)
}

/** Throws 409 unless the server can be stopped or restarted. */
export function requireStoppable(server: ServerFacts): void {
  requireIdle(server)
  if (server.state !== 'started' && !(server.state === 'error' && server.isForgotten === true))
    throw wrongState(server, 'only a started one can be stopped or restarted')
}

/** Throws 409 unless the server can be moved in its current state: live while it runs, else while it is stopped. Throws
 *  503 while its host does not answer. */
export function requireMovable(server: ServerFacts, power: 'started' | 'stopped'): void {
  requireIdle(server)
  if (server.state !== power) throw wrongState(server, 'only a started or a stopped one can be moved')
  requireHost(server)
}

/** Throws 409 unless a server of a lost node can be abandoned there: operations that wait for that node do not block
 *  it. */
export function requireReleasable(server: ServerFacts): void {
  if (server.activeOperation?.kind === 'server.force_release')
    throw operationInProgress(server.activeOperation.id, referenceOf(server))
  if (server.isProtected) throw protectedServer(server)
}

/** Throws 409 unless the server's IPv6 prefix can be exchanged for another. */
export function requireRenumberable(server: ServerFacts, isAvailable: boolean): void {
  requireIdle(server)
  if (!isAvailable)
    throw stateNotAllowed(server, 'The server can keep its IPv6 prefix: ipv6_renumber_available is false.')
}

/** Throws 409 unless the server is off, as required for a change of its plan. Throws 503 while its host does not
 *  answer. */
export function requireStopped(server: ServerFacts): void {
  requireIdle(server)
  if (isOn(server)) throw notStopped(server)
  if (server.state !== 'stopped') throw wrongState(server, 'only a stopped one can get another plan')
  requireHost(server)
}

/** Throws 409 unless the server can be rebuilt; `mayStop`: a running one is stopped for it. Throws 503 while its host
 *  does not answer. */
export function requireRebuildable(server: ServerFacts, mayStop: boolean): void {
  requireIdle(server)
  if (server.isProtected) throw protectedServer(server)
  if (isOn(server) && !mayStop) throw notStopped(server, 'Stop it first, or send stop: true.')
  if (server.state !== 'stopped' && server.state !== 'started')
    throw wrongState(server, 'only a started or a stopped one can be rebuilt')
  requireHost(server)
}

/** Work that only its host can do would wait for the host until the deadline. */
function requireHost(server: ServerFacts): void {
  if (server.isHostUnreachable)
    throw unavailable('host_unreachable', HOST_UNREACHABLE, { resource: referenceOf(server) })
}

const isOn = ({ state }: ServerFacts): boolean => state === 'started' || state === 'starting' || state === 'stopping'
const notStopped = (server: ServerFacts, remedy = 'Stop it first.'): Problem =>
  conflict('server_not_stopped', `The server is ${server.state}. ${remedy}`, { resource: referenceOf(server) })
const protectedServer = (server: ServerFacts): Problem =>
  conflict('protected', 'The server is protected. Set is_protected to false first.', { resource: referenceOf(server) })

/** Throws 409 unless the server can be deleted. One that is still being created can: its creation is cancelled. */
export function requireDeletable(server: ServerFacts): void {
  if (server.activeOperation?.kind !== 'server.create') requireIdle(server)
  else if (server.isDeleting) throw stateNotAllowed(server, 'The server is being deleted.')
  if (server.isProtected) throw protectedServer(server)
}

const HOST_UNREACHABLE =
  'The host of the server does not answer. The server shows its state again when the host is back; try again then.'

/** A server in error recovers by being started, if its host answers. */
const wrongState = (server: ServerFacts, rule: string): Problem =>
  stateNotAllowed(
    server,
    `The server is in state ${server.state}; ${rule}.${server.state === 'error' ? ` ${wayOutOfError(server)}` : ''}`,
  )

const wayOutOfError = ({ isHostUnreachable }: ServerFacts): string =>
  isHostUnreachable ? HOST_UNREACHABLE : 'Start it first, or delete it.'

const stateNotAllowed = (server: ServerFacts, detail: string): Problem =>
  conflict('state_not_allowed', detail, { resource: referenceOf(server) })
