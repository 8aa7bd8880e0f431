/** The reconciler of a registered noun, for tests that drive it by hand. */
import type { Registration } from '../../controllers/kit/controller.ts'
import type { Reconciler } from '../../kit/reconcile/reconciler.ts'

/** Throws where the parts do not have what the noun needs. */
export function reconcilerOf<Options>(noun: Registration<Options>, options: Options): Reconciler {
  const reconciler = noun.open(options)
  if (reconciler === undefined) throw new Error(`the parts are not enough for ${noun.name}`)
  return reconciler
}
