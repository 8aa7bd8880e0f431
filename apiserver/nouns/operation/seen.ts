/** Readers see that an operation has ended only once they can read what it changed, here and at every other replica.
 *  Operations are read from the store, but what they change from caches, which may be behind: clients wait for the end
 *  and read then. */
import { defined } from '../../../domain/defined.ts'
import { isDeletion, isFinal } from '../../../domain/operations.ts'
import { isNewer } from '../../../kit/kube/cache.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { accountNamespace } from '../../../resources/index.ts'
import type { OperationView } from '../../../resources/operation/index.ts'
import type { CatchUp } from '../../kit/change/catch-up.ts'
import type { Target, Targets } from '../../kit/change/targets.ts'
import type { OperationObject } from './views.ts'

/** How long a read waits for what the operation changed; after that it reports that the operation is under way. */
const PATIENCE_MILLISECONDS = 2_000
const LOOK_MILLISECONDS = 25
/** No watch is behind for longer: its replica is not ready then. */
const RECENT_MILLISECONDS = 60_000

export interface Ends {
  /** As `awaited`, without the wait. */
  viewFor<View extends OperationView>(accountId: string, view: View, record: OperationObject | undefined): Promise<View>
  /** The operation in the form that its account may see: under way until everything that it changed can be read, for
   *  which it waits a moment. `record` is its object as Kubernetes has it; undefined when only the history has the
   *  operation. */
  awaited(accountId: string, view: OperationView, record: OperationObject | undefined): Promise<OperationView>
  /** The operation in the form that operators see: they read from this replica, and targets are in no namespace of an
   *  account. */
  seenHere(view: OperationView): Promise<OperationView>
}

export function openEnds({
  targets,
  catchUp,
  clock,
}: {
  readonly targets: Pick<Targets, 'find' | 'knownVersion'>
  readonly catchUp: Pick<CatchUp, 'upTo'>
  readonly clock: Clock
}): Ends {
  const isSeen = (view: OperationView): boolean => {
    if (!isFinal(view.status)) return true
    const target = targets.find(view.id)
    return target === undefined || showsEnd(target, view)
  }
  const wait = async (view: OperationView) => {
    const until = clock.monotonicMilliseconds() + PATIENCE_MILLISECONDS
    while (!isSeen(view) && clock.monotonicMilliseconds() < until) await clock.sleep(LOOK_MILLISECONDS)
  }
  const isRecent = ({ finished_at: finishedAt }: OperationView) =>
    finishedAt === null || clock.now().getTime() - Date.parse(finishedAt) < RECENT_MILLISECONDS
  const viewFor: Ends['viewFor'] = async (accountId, view, record) => {
    if (!isSeen(view)) return underWay(view)
    if (!isFinal(view.status) || !isRecent(view)) return view
    // history may know more than the cached record
    if (record?.status === undefined || !isFinal(record.status.status)) return underWay(view)
    const { type, id } = record.spec.target
    const target = targets.knownVersion({ type, key: { namespace: accountNamespace(accountId), name: id } })
    const { resourceVersion = '' } = record.metadata
    await catchUp.upTo(accountId, { id: view.id, version: isNewer(target, resourceVersion) ? target : resourceVersion })
    return view
  }
  return {
    viewFor,
    async awaited(accountId, view, record) {
      await wait(view)
      return viewFor(accountId, view, record)
    },
    async seenHere(view) {
      await wait(view)
      return isSeen(view) ? view : underWay(view)
    },
  }
}

/** A deleted target must be removed from the caches; any other target itself shows that the operation has ended. */
function showsEnd({ object }: Target, { id, kind, status }: OperationView): boolean {
  const {
    spec: { operation: stanza },
    status: { operation } = {},
  } = object
  if (status === 'succeeded' && (isDeletion(kind) || stanza?.arguments?.['action'] === 'delete')) return false
  return operation?.id === id && isFinal(operation.status)
}

function underWay<View extends OperationView>(view: View): View {
  const { events } = view
  return {
    ...view,
    status: 'running',
    step_index: Math.min(view.step_index, Math.max(view.step_count - 1, 0)),
    error: '',
    finished_at: null,
    ...defined({ events: events?.filter(({ kind }) => kind !== view.status) }),
  }
}
