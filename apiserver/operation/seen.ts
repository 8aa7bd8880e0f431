/** An operation has ended for those who read here once what it changed can be read here. Operations are read from the
 *  store, what they change from caches, which may be behind: clients wait for the end and read then. */
import { isDeletion, isFinal } from '../../domain/operations.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { OperationView } from '../../resources/operation/index.ts'
import type { Target, Targets } from '../change/targets.ts'

/** For so long a read waits for what the operation changed; later it says that the operation is under way. */
const PATIENCE_MILLISECONDS = 2_000
const LOOK_MILLISECONDS = 25

export interface Ends {
  /** The operation as it may be told here and now: under way while its end cannot be seen. */
  seen<View extends OperationView>(view: View): View
  /** As `seen`, once the end can be seen, or after a moment. */
  awaited(view: OperationView): Promise<OperationView>
}

export function openEnds({ targets, clock }: { readonly targets: Targets; readonly clock: Clock }): Ends {
  const isSeen = (view: OperationView): boolean => {
    if (!isFinal(view.status)) return true
    const target = targets.find(view.id)
    return target === undefined || showsEnd(target, view)
  }
  const seen = <View extends OperationView>(view: View): View => (isSeen(view) ? view : underWay(view))
  return {
    seen,
    async awaited(view) {
      const until = clock.monotonicMilliseconds() + PATIENCE_MILLISECONDS
      while (!isSeen(view) && clock.monotonicMilliseconds() < until) await clock.sleep(LOOK_MILLISECONDS)
      return seen(view)
    },
  }
}

/** What was deleted has gone; everything else says itself that the operation has ended. */
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
    ...(events === undefined ? {} : { events: events.filter(({ kind }) => kind !== view.status) }),
  }
}
