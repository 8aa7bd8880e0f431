/** Operations that the platform starts by itself on servers and storages: one conditional patch with a stanza, which
 *  the target's own reconciler finds, audits and carries out. A target that is busy is left alone until the next
 *  reconcile. */
import { gibibytesOf } from '../../domain/server/migration-policies.ts'
import type { OperationKind } from '../../domain/operations.ts'
import { replacing } from '../../kit/kube/merge-patch.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { isConflict } from '../../kit/kube/store.ts'
import { ownTrace } from '../../kit/reconcile/trace.ts'
import type { Operable } from '../../resources/operation/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import type { EffectAction, EffectOn } from './effects.ts'
import { activeOperation, derivedStanza } from './operation/stanza.ts'
import type { Parts } from './parts.ts'

/** An operation on a server or a storage. */
export interface PlatformOperation {
  readonly namespace: string
  /** Id of the server or storage. */
  readonly id: string
  readonly kind: OperationKind
  /** `system:<component>`. */
  readonly actor: string
  readonly arguments: Readonly<Record<string, string>>
  /** Fields of the target's spec that change with it. */
  readonly spec?: Readonly<Record<string, unknown>>
}

/** The effects of a noun that starts operations on servers. */
export interface ServerOperationEffects {
  /** Starts an operation on a server. */
  readonly order: PlatformOperation
}

/** The action that starts the operation on the server; the server's next reconcile carries it out. */
export const startServerOperation = (input: PlatformOperation): EffectAction<ServerOperationEffects> => ({
  do: 'effect',
  name: 'order',
  input,
})

type OperationEffect = EffectOn<PlatformOperation, unknown, unknown>

export const serverOperationEffect = (parts: Beginning): OperationEffect =>
  beginning(parts, Server, ({ status }) => gibibytesOf(status ?? {}))
export const storageOperationEffect = (parts: Beginning): OperationEffect =>
  beginning(parts, Storage, ({ spec }) => spec.sizeGibibytes)

type Beginning = Pick<Parts, 'store' | 'caches' | 'clock'>

/** Does nothing when the target is busy, being deleted or does not exist, and when another writer has changed it. */
const beginning =
  <Spec extends Operable['spec'], Status extends Operable['status']>(
    { store, caches, clock }: Beginning,
    resource: ResourceType<Spec, Status>,
    extentOf: (target: KubeObject<Spec, Status>) => number,
  ): OperationEffect =>
  async ({ namespace, id, kind, actor, arguments: args, spec = {} }) => {
    const key = { namespace, name: id }
    const target = await store.get(resource, key)
    if (
      target === undefined ||
      target.metadata.deletionTimestamp !== undefined ||
      activeOperation(target) !== undefined
    )
      return undefined
    const { uid = '', generation = 0, resourceVersion } = target.metadata
    const stanza = derivedStanza(kind, {
      seed: `${uid}/${generation}`,
      actor,
      now: clock.now(),
      gibibytes: extentOf(target),
    })
    const earlier = target.spec.operation?.arguments ?? {}
    const operation = { ...stanza, ...ownTrace(), arguments: replacing(earlier, args) }
    try {
      caches
        .of(resource)
        .apply(await store.patch(resource, key, { metadata: { resourceVersion }, spec: { ...spec, operation } }))
    } catch (error) {
      if (!isConflict(error)) throw error // another writer was first
    }
    return undefined
  }
