/** What a noun registers with the controllers, in one value. `CONTROLLERS` in `index.ts` is the list; the targets of
 *  operations, the handlers of change intents, and what tests enumerate are derived from it. */
import type { Transaction } from 'kysely'
import { defined } from '../../domain/defined.ts'
import type { OperationKind } from '../../domain/operations.ts'
import type { ChangeIntent } from '../../db/change/index.ts'
import type { Tables } from '../../db/tables.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import type { Reconciler, RootType, Watch } from '../../kit/reconcile/reconciler.ts'
import type { ActionWith, EffectsOn } from './effects.ts'
import type { Parts } from './parts.ts'

/** Which process reconciles an object: that of the zone in its spec, that of the zone which the object is, or the one
 *  for work that belongs to no zone. */
export type Sharding = 'by-zone' | 'zones' | 'common'

/** How the sweeper of change intents judges and undoes an unfinished change of the noun. */
export interface IntentHandler<State = unknown> {
  /** The name of the noun in change intents and audit entries. */
  readonly resourceType: string
  /** Whether the write to Kubernetes happened. Throws Unavailable when that cannot be determined. */
  wasApplied(parts: Parts, intent: ChangeIntent): Promise<boolean>
  /** Removes what a change that was not applied left in Kubernetes. Safe to repeat. */
  removeObjects?(parts: Parts, intent: ChangeIntent): Promise<void>
  /** Reads what `release` needs from Kubernetes, because no transaction may wait for that. */
  look?(parts: Parts, intent: ChangeIntent): Promise<State>
  /** Releases what a change that was not applied has claimed, in the transaction that removes its intent. `state` is
   *  the answer of `look`; undefined without one. */
  release(tx: Transaction<Tables>, intent: ChangeIntent, state: State): Promise<void>
}

/** What a noun reads and does, built from the parts of a process. */
export interface OpenParts<Spec, Status, Observed, Inputs> {
  /** Other kinds that wake roots. Their caches are available to `observe`; children that the plan names belong here
   *  too. */
  readonly watches: readonly Watch[]
  /** Reads caches and databases, changes nothing. Throws Unavailable when it cannot read them. */
  observe(root: KubeObject<Spec, Status>, now: Date): Promise<Observed> | Observed
  readonly effects: EffectsOn<Inputs, Spec, Status>
}

/** Decides from what was observed: pure, synchronous, total. Built by `planOperations` for a noun with operations. */
export interface Plan<Spec, Status, Observed, Inputs> {
  (root: KubeObject<Spec, Status>, observed: Observed, now: Date): readonly ActionWith<Inputs>[]
  /** The kinds of operations that the plan has flows for; absent when the noun has no operations. */
  readonly kinds?: readonly OperationKind[]
}

interface Noun<Spec, Status, Observed, Inputs, Options> {
  /** Lower case; names the queue and the metrics. */
  readonly name: string
  /** The kind of the root objects. No other controller writes their status. */
  readonly resource: RootType<Spec, Status>
  readonly sharding: Sharding
  /** Added to every root before the first reconcile, so that nothing is ever left behind. */
  readonly finalizer?: string
  /** Absent when the API server writes no intents for changes of the noun. */
  readonly intent?: IntentHandler
  readonly plan: Plan<Spec, Status, Observed, Inputs>
  /** Kinds besides its own that it reads and watches. */
  readonly reads: readonly ResourceType[]
  /** Kinds whose objects it creates and removes. */
  readonly writes: readonly ResourceType[]
  /** Kinds whose objects others create and it changes. */
  readonly patches?: readonly ResourceType[]
  /** Undefined where the process lacks what the controller needs. */
  open(options: Options): OpenParts<Spec, Status, Observed, Inputs> | undefined
}

/** A noun as the list contains it. */
export interface Registration<Options>
  extends Pick<
    Noun<unknown, unknown, unknown, unknown, Options>,
    'name' | 'sharding' | 'finalizer' | 'intent' | 'reads' | 'writes' | 'patches'
  > {
  readonly resource: RootType
  /** Empty when the noun has no operations. */
  readonly operationKinds: readonly OperationKind[]
  open(options: Options): Reconciler | undefined
}

/** Registers a noun. `Inputs` maps the names of its effects to their inputs: a plan that asks for an effect outside the
 *  map, and a missing or superfluous effect, do not compile. */
export const controller =
  <Inputs>() =>
  <Spec, Status, Observed, Options>({
    open,
    plan,
    ...noun
  }: Noun<Spec, Status, Observed, Inputs, Options>): Registration<Options> => ({
    ...noun,
    operationKinds: plan.kinds ?? [],
    open(options) {
      const opened = open(options)
      if (opened === undefined) return undefined
      const { finalizer } = noun
      return {
        name: noun.name,
        type: noun.resource,
        ...defined({ finalizer }),
        ...opened,
        plan,
      } as unknown as Reconciler // the loop passes it roots of `resource`, and effects the inputs that its plan wrote
    },
  })
