/** Begins an operation of a server: the desired state and the operation that brings it about are one conditional write.
 */
import type { Transaction } from 'kysely'
import type { AuditChange } from '../../domain/audit.ts'
import type { Extent, OperationKind } from '../../domain/operations.ts'
import type { ServerFacts } from '../../domain/server-rules.ts'
import type { Tables } from '../../db/tables.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { requireMatch } from '../../kit/http/conditional.ts'
import type { Route } from '../../kit/http/route.ts'
import { accountNamespace } from '../../resources/index.ts'
import type { OperationView } from '../../resources/operation/index.ts'
import { factsOf, Server } from '../../resources/server/index.ts'
import type { OperationStanza } from '../../resources/shapes.ts'
import { accept, announceEarlier, newStanza } from '../change/accept.ts'
import { patchWithOperation } from '../change/begin.ts'
import { auditEntryOf } from '../change/audit.ts'
import { begunView } from '../change/begun.ts'
import type { Parts } from '../parts.ts'
import { idOf } from '../change/id-of.ts'
import { readAgain } from '../plain/change-object.ts'
import { etagOfObject } from '../plain/objects.ts'
import type { ServerObject, Servers } from './servers.ts'
import { storedOf } from '../list/stored.ts'

type Patch = Readonly<Record<string, unknown>>

/** What is known when the change is written. */
export interface Beginning<Claims> {
  readonly server: ServerObject
  readonly operation: OperationStanza
  readonly claims: Claims
}

export interface Verb<Claims = void> extends Extent {
  readonly kind: OperationKind
  /** Throws a Problem when the state does not allow it. */
  readonly validate: (server: ServerFacts) => void
  /** For the audit log. */
  readonly changes?: (server: ServerObject) => readonly AuditChange[]
  /** Merge patch of the spec. */
  readonly spec: Patch | ((beginning: Beginning<Claims>) => Patch)
  readonly arguments?:
    | Readonly<Record<string, string>>
    | ((beginning: Beginning<Claims>) => Readonly<Record<string, string>>)
  /** Takes what the operation needs, and gives it back when it was not begun. */
  readonly claim?: (tx: Transaction<Tables>, operation: OperationStanza) => Promise<Claims>
  readonly release?: (tx: Transaction<Tables>, operation: OperationStanza) => Promise<void>
  /** Makes what the change names, right before it is written; may be called again. */
  readonly prepare?: (beginning: Pick<Beginning<Claims>, 'server' | 'operation'>) => Promise<void>
}

/** Answers 202 with the operation that has begun. Throws what `begin` does. */
export const operate = async <R extends Route, Claims = void>(
  parts: Parts,
  servers: Servers,
  call: Call<R, Customer>,
  verb: Verb<Claims>,
): Promise<Answer> => ({ status: 202, body: { operation: await begin(parts, servers, call, verb) } })

/** Answers the operation as it is then. */
export async function begin<R extends Route, Claims = void>(
  parts: Parts,
  servers: Servers,
  call: Call<R, Customer>,
  verb: Verb<Claims>,
): Promise<OperationView> {
  const id = idOf(call)
  const { caller, request, now } = call
  const validate = (server: ServerObject) => {
    requireMatch(request, etagOfObject(server))
    verb.validate(factsOf(storedOf(server)))
  }
  const before = await servers.read(caller.accountId, id)
  validate(before)
  const operation = newStanza(parts, verb.kind, {
    actor: caller.actor,
    requestId: request.requestId,
    now,
    gibibytes: verb.gibibytes,
    graceSeconds: verb.graceSeconds,
  })
  const read = readAgain(servers, { accountId: caller.accountId, id }, before)
  const written = await accept(parts, {
    id: operation.id,
    accountId: caller.accountId,
    resource: { type: 'server', id },
    operation,
    audit: auditEntryOf(call, { resourceId: id, changes: verb.changes?.(before) ?? [] }),
    claim: async (tx) => verb.claim?.(tx, operation),
    ...(verb.release === undefined ? {} : { release: (tx) => verb.release?.(tx, operation) ?? Promise.resolve() }),
    write: async (claimed) => {
      const server = await read()
      validate(server)
      await announceEarlier(parts, { accountId: caller.accountId, server })
      await verb.prepare?.({ server, operation })
      const beginning = { server, operation, claims: claimed as Claims } // what its own `claim` has answered
      const added = typeof verb.arguments === 'function' ? verb.arguments(beginning) : verb.arguments
      return patchWithOperation(
        parts,
        Server,
        server,
        added === undefined ? operation : { ...operation, arguments: { ...added } },
        typeof verb.spec === 'function' ? verb.spec(beginning) : verb.spec,
      )
    },
    read: () => parts.store.get(Server, { namespace: accountNamespace(caller.accountId), name: id }),
    wasApplied: (server) => server.spec.operation?.id === operation.id,
  })
  servers.cache.apply(written)
  return begunView(written, { type: 'server', id })
}
