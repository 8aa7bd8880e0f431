/** What a reconciler may decide: a closed union. Each action is idempotent and free when it is already true;
 *  `interpret.ts` is the only place where actions take effect. */
import type { Draft } from '../kube/store.ts'
import type { Key, ResourceType } from '../kube/object.ts'

export type Action =
  /** The object exists with these fields (server-side apply under the reconciler's name). */
  | { readonly do: 'ensure'; readonly type: ResourceType; readonly draft: Draft<unknown, unknown> }
  /** The object is going away or gone. */
  | { readonly do: 'remove'; readonly type: ResourceType; readonly key: Key }
  /** Status fields of the root object; merged, undefined removes. Not written when nothing changes. */
  | { readonly do: 'status'; readonly status: Readonly<Record<string, unknown>> }
  /** Spec or metadata fields of the root object, conditional on the version that was seen. */
  | { readonly do: 'change'; readonly patch: Readonly<Record<string, unknown>> }
  /** Come back after this many seconds, or earlier when something seen changes. */
  | { readonly do: 'wait'; readonly seconds: number; readonly for: string }
  /** The operation of the root object is at this step, or has ended. */
  | { readonly do: 'operation'; readonly id: string; readonly step: string; readonly outcome?: 'succeeded' | 'failed' | 'cancelled'; readonly error?: string; readonly events?: readonly OperationEvent[] }
  /** An effect outside Kubernetes, by the name of an effect that the reconciler brought along (claims, history). */
  | { readonly do: 'effect'; readonly name: string; readonly input: Readonly<Record<string, unknown>> }
  /** The reconciler's finalizer is removed: nothing of the object is left anywhere. */
  | { readonly do: 'finalized' }

export interface OperationEvent {
  readonly kind: string
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}
