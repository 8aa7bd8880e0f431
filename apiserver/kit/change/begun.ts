/** The answer to a change that started an operation. */
import {
  activeOperationOf,
  carrierOf,
  namedTarget,
  type Operable,
  type OperationSpec,
  type OperationView,
  toOperationView,
} from '../../../resources/operation/index.ts'

/** The operation that a change of its target started just now. */
export function begunView(target: Operable, reference: OperationSpec['target']): Omit<OperationView, 'events'> {
  const active = activeOperationOf(target)
  if (active === undefined) throw new Error('the operation ended before it was answered')
  const named = namedTarget(reference.type, { name: reference.id, spec: target.spec })
  return toOperationView(active, named, carrierOf(target.spec.operation))
}
