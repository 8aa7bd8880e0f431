/** Starts operations of customers: the desired state and the operation that brings it about are one conditional write.
 *  The same for every noun with operations. */
import type { Transaction } from 'kysely'
import type { AuditChange } from '../../../domain/audit/entry.ts'
import { defined } from '../../../domain/defined.ts'
import { type Extent, isDeletion, type OperationKind } from '../../../domain/operations.ts'
import { notFound } from '../../../domain/problem.ts'
import type { Tables } from '../../../db/tables.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { requireMatch } from '../../../kit/http/conditional.ts'
import type { Route } from '../../../kit/http/route.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { accountNamespace } from '../../../resources/index.ts'
import type { Operable, OperationSpec, OperationView } from '../../../resources/operation/index.ts'
import type { OperationStanza, Stored } from '../../../resources/kit/shapes.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../parts.ts'
import { readAgain } from '../plain/change-object.ts'
import { etagOfObject, type ObjectNoun, type ObjectParts, type Objects, openObjects } from '../plain/objects.ts'
import { accept, announceEarlier, newStanza } from './accept.ts'
import { auditEntryOf } from './audit.ts'
import { patchWithOperation } from './begin.ts'
import { begunView } from './begun.ts'
import { idOf } from './id-of.ts'

type Patch = Readonly<Record<string, unknown>>

/** Objects that have operations, with the facts by which the rules of the domain judge them. */
export interface OperatedObjects<Spec, Status, View, Facts> extends Objects<Spec, Status, View> {
  readonly name: OperationSpec['target']['type']
  readonly factsOf: (object: KubeObject<Spec, Status>) => Facts
}

/** Opens the objects of a noun that has operations. */
export function openOperated<
  Spec extends Operable['spec'],
  Status extends Operable['status'],
  Surroundings extends object,
  View,
  Facts,
>(
  parts: ObjectParts,
  noun: ObjectNoun<Spec, Status, Surroundings, View> & {
    readonly name: OperationSpec['target']['type']
    readonly factsOf: (stored: Stored<Spec, Status>) => Facts
  },
): OperatedObjects<Spec, Status, View, Facts> {
  const objects = openObjects(parts, noun)
  return {
    ...objects,
    name: noun.name,
    factsOf: (object) => noun.factsOf(storedOf(object)),
    async read(accountId, id) {
      const object = await objects.read(accountId, id)
      if (isDeleted(object)) throw notFound(noun.title)
      return object
    },
  }
}

/** Its deletion has succeeded: nothing is left but the object, until its finalizer is removed. */
const isDeleted = ({ metadata, status }: KubeObject<unknown, Operable['status']>): boolean =>
  metadata.deletionTimestamp !== undefined &&
  status?.operation?.status === 'succeeded' &&
  isDeletion(status.operation.kind)

/** What is known when the change is written. */
export interface Beginning<Target, Claims> {
  readonly target: Target
  readonly operation: OperationStanza
  readonly claims: Claims
}

export interface Verb<Target, Facts, Claims = void> extends Extent {
  readonly kind: OperationKind
  /** Its name in the audit log, when it differs from the route's. */
  readonly audit?: string
  /** Throws for objects that customers must not change, when this differs from the rule for every change of the
   *  noun. */
  readonly requireOwn?: (target: Target) => void
  /** Throws a Problem when the state does not allow it. */
  readonly validate: (facts: Facts) => void
  /** For the audit log. */
  readonly changes?: (target: Target) => readonly AuditChange[]
  /** Merge patch of the spec. */
  readonly spec: Patch | ((beginning: Beginning<Target, Claims>) => Patch)
  readonly arguments?:
    | Readonly<Record<string, string>>
    | ((beginning: Beginning<Target, Claims>) => Readonly<Record<string, string>>)
  /** Claims what the operation needs, and releases it when the operation was not started; `stored` is the object by
   *  then. */
  readonly claim?: (tx: Transaction<Tables>, operation: OperationStanza) => Promise<Claims>
  readonly release?: (
    tx: Transaction<Tables>,
    result: { readonly operation: OperationStanza; readonly stored: Target | undefined },
  ) => Promise<void>
  /** Creates what the change names, right before the write; may be called again. */
  readonly prepare?: (beginning: Pick<Beginning<Target, Claims>, 'target' | 'operation'>) => Promise<void>
}

/** Answers 202 with the operation that was started. Throws what `begin` does. */
export const operate = async <
  R extends Route,
  Spec extends Operable['spec'],
  Status extends Operable['status'],
  View,
  Facts,
  Claims = void,
>(
  parts: Parts,
  objects: OperatedObjects<Spec, Status, View, Facts>,
  call: Call<R, Customer>,
  verb: Verb<KubeObject<Spec, Status>, Facts, Claims>,
): Promise<Answer> => ({ status: 202, body: { operation: await begin(parts, objects, call, verb) } })

/** Returns the operation as it is then. Throws 404, what `validate`, `claim` and `prepare` throw, and 409 for another
 *  version than the one that the request names. */
export async function begin<
  R extends Route,
  Spec extends Operable['spec'],
  Status extends Operable['status'],
  View,
  Facts,
  Claims = void,
>(
  parts: Parts,
  objects: OperatedObjects<Spec, Status, View, Facts>,
  call: Call<R, Customer>,
  verb: Verb<KubeObject<Spec, Status>, Facts, Claims>,
  id = idOf(call),
): Promise<OperationView> {
  const { caller, request, now } = call
  const { accountId } = caller
  const { resource } = objects
  const reference = { type: objects.name, id }
  const validate = (target: KubeObject<Spec, Status>) => {
    requireMatch(request, etagOfObject(target))
    ;(verb.requireOwn ?? objects.requireOwn)(target)
    verb.validate(objects.factsOf(target))
  }
  const before = await objects.read(accountId, id)
  validate(before)
  const operation = newStanza(parts, verb.kind, {
    actor: caller.actor,
    requestId: request.requestId,
    now,
    gibibytes: verb.gibibytes,
    graceSeconds: verb.graceSeconds,
  })
  const read = readAgain(objects, { accountId, id }, before)
  const written = await accept<Claims | undefined, Spec, Status>(parts, {
    id: operation.id,
    accountId,
    resource: reference,
    operation,
    audit: auditEntryOf(call, {
      resourceId: id,
      changes: verb.changes?.(before) ?? [],
      ...defined({ action: verb.audit }),
    }),
    claim: async (tx) => verb.claim?.(tx, operation),
    ...(verb.release === undefined ? {} : { release: async (tx, stored) => verb.release?.(tx, { operation, stored }) }),
    write: async (claimed) => {
      const target = await read()
      validate(target)
      await announceEarlier(parts, accountId, reference, target)
      await verb.prepare?.({ target, operation })
      const beginning = { target, operation, claims: claimed as Claims } // what its own `claim` has returned
      const added = typeof verb.arguments === 'function' ? verb.arguments(beginning) : verb.arguments
      return patchWithOperation(
        parts,
        resource,
        target,
        added === undefined ? operation : { ...operation, arguments: { ...added } },
        typeof verb.spec === 'function' ? verb.spec(beginning) : verb.spec,
      )
    },
    read: () => parts.store.get(resource, { namespace: accountNamespace(accountId), name: id }),
    wasApplied: (target) => target.spec.operation?.id === operation.id,
  })
  objects.cache.apply(written)
  return begunView(written, reference)
}
