/** What a controller brings to the loop: which objects it answers for, what wakes it, how it reads the world and what
 *  it decides. */
import type { z } from 'zod'
import type { Key, KubeObject, ResourceType } from '../kube/object.ts'
import type { Action, ConditionDraft } from './action.ts'
import type { EventDraft } from './events.ts'

/** A kind whose objects a reconciler looks after, with the schema that says when their status is whole. */
export interface RootType<Spec = unknown, Status = unknown> extends ResourceType<Spec, Status> {
  readonly status: z.ZodType
}

export interface Reconciler<Spec = unknown, Status = unknown, Observed = unknown> {
  /** Lower case; names the queue and the metrics. */
  readonly name: string
  /** The kind of the root objects. No other reconciler writes their status. */
  readonly type: RootType<Spec, Status>
  /** Other kinds that wake roots. Their caches are there for `observe`; children that `ensure` and `remove` name belong
   *  here too. */
  readonly watches: readonly Watch[]
  /** Called once with a function that wakes roots for what happens outside Kubernetes; the answer unsubscribes. */
  wakes?(wake: (key: Key) => void): () => void
  /** Put on every root before its first plan, so that a deletion always waits for the reconciler's clean-up. */
  readonly finalizer?: string
  /** Reads caches and databases, changes nothing. Throws Unavailable when it cannot know. */
  observe(root: KubeObject<Spec, Status>, now: Date): Promise<Observed> | Observed
  /** Pure, synchronous, total. Guards in order: deleting, blocked, missing, wrong, done. `isOverdue(root, now)` tells
   *  that the operation's deadline has passed; the loop wakes the root at that instant. */
  plan(root: KubeObject<Spec, Status>, observed: Observed, now: Date): readonly Action[]
  /** Effects by name. Each is idempotent: it may have happened already, wholly, when it is called again. */
  readonly effects?: Readonly<Record<string, Effect<Spec, Status>>>
}

/** What it answers of the status is written to the root's, as a `status` action of the same plan would be; its events
 *  are recorded on the root. */
export type Effect<Spec = unknown, Status = unknown> = (
  input: Readonly<Record<string, unknown>>,
  root: KubeObject<Spec, Status>,
) => Promise<EffectReport | undefined>

export interface EffectReport {
  /** For the same input the same, once what it did has come true: what a plan waits for must not move because the
   *  effect is repeated. It is refused when it does (`restless.ts`). */
  readonly status?: Readonly<Record<string, unknown>>
  /** The status is what was read from something that moves by itself. */
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
