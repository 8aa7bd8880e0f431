/** What a controller gives to the loop: the kind of its objects, what wakes it, how it observes the world and what it
 *  decides. */
import type { z } from 'zod'
import type { Key, KubeObject, ResourceType } from '../kube/object.ts'
import type { Action, ConditionDraft } from './action.ts'
import type { EventDraft } from './events.ts'

/** A kind whose objects a reconciler handles, with the schema that says when their status is complete. */
export interface RootType<Spec = unknown, Status = unknown> extends ResourceType<Spec, Status> {
  readonly status: z.ZodType
}

export interface Reconciler<Spec = unknown, Status = unknown, Observed = unknown> {
  /** Lower case; names the queue and the metrics. */
  readonly name: string
  /** The kind of the root objects. No other reconciler writes their status. */
  readonly type: RootType<Spec, Status>
  /** Other kinds that wake roots. Their caches are ready for `observe`; include the kinds of children in `ensure` and
   *  `remove`. */
  readonly watches: readonly Watch[]
  /** Called once with a function that wakes roots for events outside Kubernetes; the returned function unsubscribes. */
  wakes?(wake: (key: Key) => void): () => void
  /** Added to every root before its first plan, so that a deletion always waits for the reconciler's clean-up. */
  readonly finalizer?: string
  /** Reads caches and databases, changes nothing. Throws Unavailable when it cannot know. */
  observe(root: KubeObject<Spec, Status>, now: Date): Promise<Observed> | Observed
  /** Pure, synchronous, total. Guards in order: deleting, blocked, missing, wrong, done. `isOverdue(root, now)` says
   *  that the operation's deadline has passed; the loop wakes the root at that instant. */
  plan(root: KubeObject<Spec, Status>, observed: Observed, now: Date): readonly Action[]
  /** Effects by name. Each is idempotent: it may have happened completely before, when it is called again. */
  readonly effects?: Readonly<Record<string, Effect<Spec, Status>>>
}

/** The returned status is written to the root's, as a `status` action of the same plan would be; its events are
 *  recorded on the root. */
export type Effect<Spec = unknown, Status = unknown> = (
  input: Readonly<Record<string, unknown>>,
  root: KubeObject<Spec, Status>,
) => Promise<EffectReport | undefined>

export interface EffectReport {
  /** Must be the same for the same input, once its effect has come true: a result that a plan waits for must not change
   *  because the effect is repeated. The loop refuses it when it does (`restless.ts`). */
  readonly status?: Readonly<Record<string, unknown>>
  /** The status was read from something that changes by itself. */
  readonly isReading?: true
  readonly conditions?: readonly ConditionDraft[]
  readonly events?: readonly EventDraft[]
}

export interface Watch<Spec = unknown, Status = unknown> {
  readonly type: ResourceType<Spec, Status>
  /** The roots that a change of the object concerns. Pure over caches. */
  toKeys(object: KubeObject<Spec, Status>): readonly Key[]
}

/** A Watch whose mapping knows the type of its objects. */
export const watch = <Spec, Status>(
  type: ResourceType<Spec, Status>,
  toKeys: (object: KubeObject<Spec, Status>) => readonly Key[],
): Watch => ({ type, toKeys }) as Watch<Spec, Status> as unknown as Watch // the loop hands it objects of `type` only
