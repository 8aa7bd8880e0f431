/** The plain changes of nouns whose source of truth is a row in PostgreSQL, claimed there with everything that it
 *  needs. The object in Kubernetes shows the same to kubectl and is written in one step with the row. */
import type { Transaction } from 'kysely'
import { notFound } from '../../../domain/problem.ts'
import type { Queries } from '../../../db/kit/open.ts'
import type { Tables } from '../../../db/tables.ts'
import type { Call, Customer } from '../../../kit/http/call.ts'
import type { Route } from '../../../kit/http/route.ts'
import { apiVersionOf, type KubeObject, type ResourceType } from '../../../kit/kube/object.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { ACCOUNT_LABEL, LAST_CHANGE_ANNOTATION } from '../../../resources/kit/labels.ts'
import { accept, type Acceptance, commitEarlier } from '../change/accept.ts'
import { auditEntryOf } from '../change/audit.ts'
import { idOf } from '../change/id-of.ts'
import { ensureNamespace } from '../change/namespaces.ts'
import type { Parts } from '../parts.ts'

interface ClaimedRow {
  readonly id: string
  /** Unique in the account. */
  readonly name: string
}

/** What the changes need to know of a noun. Ids of other accounts are unknown ids to every query. */
interface ClaimedNoun<Row extends ClaimedRow, Spec, Status> {
  /** Its name in answers and references. */
  readonly name: Acceptance<unknown, unknown, unknown>['resource']['type']
  /** Its name in refusals. */
  readonly title: string
  readonly resource: ResourceType<Spec, Status>
  /** The controller removes it once nothing needs the object. */
  readonly finalizer: string
  readonly specOf: (row: Row) => Spec
  readonly find: (queries: Queries, accountId: string, id: string) => Promise<Row | undefined>
  /** Claims the quota too. Throws 409 for a name that is taken. */
  readonly claim: (tx: Transaction<Tables>, accountId: string, row: Row) => Promise<void>
  /** Releases the quota too. Returns the row that was deleted; throws 409 while it is in use. */
  readonly release: (tx: Transaction<Tables>, accountId: string, id: string) => Promise<Row | undefined>
}

/** Claims the row and creates the matching object. Throws what `claim` does. */
export async function createClaimed<R extends Route, Row extends ClaimedRow, Spec, Status>(
  parts: Parts,
  noun: Omit<ClaimedNoun<Row, Spec, Status>, 'title' | 'find' | 'release'> & {
    readonly release: (tx: Transaction<Tables>, accountId: string, id: string) => Promise<unknown>
  },
  call: Call<R, Customer>,
  row: Row,
): Promise<void> {
  const { accountId } = call.caller
  const { name: type, resource, finalizer } = noun
  const [changeId, namespace] = [newUuid(parts.random), accountNamespace(accountId)]
  await accept(parts, {
    id: changeId,
    accountId,
    resource: { type, id: row.id },
    audit: auditEntryOf(call, { resourceId: row.id, detail: { name: row.name } }),
    claim: (tx) => noun.claim(tx, accountId, row),
    release: async (tx) => void (await noun.release(tx, accountId, row.id)),
    write: async () => {
      await ensureNamespace(parts, accountId)
      const metadata = {
        name: row.id,
        namespace,
        labels: { [ACCOUNT_LABEL]: accountId },
        annotations: { [LAST_CHANGE_ANNOTATION]: changeId },
        finalizers: [finalizer],
      }
      return parts.store.create(resource, { metadata, spec: noun.specOf(row) })
    },
    read: () => parts.store.get(resource, { namespace, name: row.id }),
    wasApplied: () => true, // nobody else has the id
  })
}

/** Releases the row and deletes the object. Returns the row as `release` does. Throws 404 and what `release` does. */
export async function deleteClaimed<R extends Route, Row extends ClaimedRow, Spec, Status>(
  parts: Parts,
  noun: Omit<ClaimedNoun<Row, Spec, Status>, 'finalizer'>,
  call: Call<R, Customer>,
): Promise<Row> {
  const { accountId } = call.caller
  const { name: type, resource, title } = noun
  const id = idOf(call)
  const before = await noun.find(parts.db, accountId, id)
  if (before === undefined) throw notFound(title)
  let released = before
  const key = { namespace: accountNamespace(accountId), name: id }
  await accept(parts, {
    id: newUuid(parts.random),
    accountId,
    resource: { type, id },
    audit: auditEntryOf(call, { resourceId: id, detail: { name: before.name } }),
    claim: async (tx) => {
      const row = await noun.release(tx, accountId, id)
      if (row === undefined) throw notFound(title)
      released = row
    },
    release: (tx) => noun.claim(tx, accountId, before),
    write: async () => {
      const object = await parts.store.get(resource, key)
      if (object === undefined)
        // it is deleted already
        return { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: key, spec: noun.specOf(before) }
      await commitLast(parts, object)
      await parts.store.delete(resource, key, object.metadata.uid === undefined ? {} : { uid: object.metadata.uid })
      return object
    },
    read: async () => undefined,
    wasApplied: () => false,
  })
  return released
}

/** Called before another change replaces the last one. */
async function commitLast(parts: Parts, { metadata: { annotations } }: KubeObject<unknown, unknown>): Promise<void> {
  const earlier = annotations?.[LAST_CHANGE_ANNOTATION]
  if (earlier !== undefined) await commitEarlier(parts, earlier)
}
