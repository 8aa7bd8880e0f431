/** Operations in the stream of changes: from their object while it exists, from the history afterwards. */
import { isHiddenTarget } from '../../../domain/managed-machine/rules.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { findOperation } from '../../../db/operation/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { listOperations, Operation, type OperationView } from '../../../resources/operation/index.ts'
import type { Targets } from '../../kit/change/targets.ts'
import { besides, type Feed, sourceOf } from '../../kit/feed.ts'
import type { Parts } from '../../kit/parts.ts'
import { openEnds } from './seen.ts'
import { ofHistory, ofObject, withActorNames } from './views.ts'

/** An end is sent once everything that the operation changed can be read, as reads and lists show it: then the target
 *  shows it too, which touches the operation again. Operations are never deleted. */
export function operationFeed(parts: Parts & { readonly targets: Targets }): Feed {
  const { caches, db, targets } = parts
  const cache = caches.of(Operation)
  const ends = openEnds(parts)
  const viewOf = async (accountId: string, id: string): Promise<OperationView | undefined> => {
    const object = cache.get({ namespace: accountNamespace(accountId), name: id })
    if (object !== undefined)
      return isHiddenTarget(object.spec.target) ? undefined : ends.viewFor(accountId, ofObject(object), object)
    const finished = isUuid(id) ? await findOperation(db, accountId, id) : undefined
    return finished === undefined || isHiddenTarget(finished.target) ? undefined : ofHistory(finished)
  }
  return {
    type: 'operation',
    list: listOperations,
    isAudited: false,
    sources: [
      sourceOf(
        cache,
        besides(({ metadata: { name } }) => [name]),
      ),
      ...targets.caches.map((carriers) =>
        sourceOf(
          carriers,
          besides(({ spec, status }) => [spec.operation?.id, status?.operation?.id]),
          { part: ({ spec, status }) => [spec.operation?.id, status?.operation?.id, status?.operation?.status] },
        ),
      ),
    ],
    async itemsOf(accountId, ids) {
      const found: OperationView[] = []
      for (const id of ids) {
        const view = await viewOf(accountId, id)
        if (view !== undefined) found.push(view)
      }
      const views = await withActorNames(db, found)
      return new Map(views.map(({ events: _events, ...item }) => [item.id, Buffer.from(JSON.stringify(item))]))
    },
  }
}
