/** What a reconciler may decide: a closed union. Each action is idempotent and does nothing when it is already true.
 *  Actions take effect only in `interpret.ts`, in the order of the plan, with one exception: `status` and the mirror of
 *  `operation` on the root are collected and written together at the end, so that a reader never sees one without the
 *  other. */
import type { Draft } from '../kube/store.ts'
import type { Key, ResourceType } from '../kube/object.ts'

export type Action =
  /** The object exists with these fields (server-side apply under the process's name); fields of an earlier draft that
   *  are not in this one are removed. An object that is being deleted is left alone. */
  | { readonly do: 'ensure'; readonly type: ResourceType; readonly draft: Draft<unknown, unknown> }
  /** The object is deleted or being deleted. */
  | { readonly do: 'remove'; readonly type: ResourceType; readonly key: Key }
  /** Status fields of the root object; merged by top-level field, undefined removes. Not written when nothing changes.
   *  observedGeneration is set, conditions get theirs and keep lastTransitionTime while their status stays. */
  | {
      readonly do: 'status'
      readonly status: Readonly<Record<string, unknown>>
      readonly conditions?: readonly ConditionDraft[]
    }
  /** Spec or metadata fields of the root object (JSON merge patch), conditional on the observed version. */
  | { readonly do: 'change'; readonly patch: Readonly<Record<string, unknown>> }
  /** Reconcile again after this many seconds, or earlier when something observed changes. */
  | { readonly do: 'wait'; readonly seconds: number; readonly for: string }
  /** The operation of the root object is at this step, or has ended. Events are those of this step; an existing one is
   *  not added again. */
  | {
      readonly do: 'operation'
      readonly id: string
      readonly step: string
      readonly outcome?: OperationOutcome
      readonly error?: string
      readonly events?: readonly OperationEvent[]
      /** RFC 3339: when it started, if that was before now. */
      readonly startedAt?: string
    }
  /** An effect outside Kubernetes, by the name of an effect that the reconciler provides (claims, history). */
  | { readonly do: 'effect'; readonly name: string; readonly input: Readonly<Record<string, unknown>> }
  /** The reconciler's finalizer is removed: nothing of the object is left anywhere. */
  | { readonly do: 'finalized' }

export type OperationAction = Extract<Action, { do: 'operation' }>
export type OperationOutcome = 'succeeded' | 'failed' | 'cancelled'

export interface OperationEvent {
  readonly kind: string
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}

/** A condition as a plan states it. */
export interface ConditionDraft {
  /** PascalCase, for example Ready. */
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  /** One CamelCase word. */
  readonly reason: string
  readonly message: string
  /** Whether it explains a refusal: each refusal becomes an Event of the object. Not stored. */
  readonly isRefusal?: boolean
}
