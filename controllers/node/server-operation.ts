/** The effect `order`: a node has something done to a server. It is one conditional patch with a stanza, which the
 *  server's own
 *  reconciler finds, audits and carries out; a server that is busy is left alone until the next turn. */
import { gibibytesOf } from '../../domain/migration-policies.ts'
import type { OperationKind } from '../../domain/operations.ts'
import { replacing } from '../../kit/kube/merge-patch.ts'
import { isConflict } from '../../kit/kube/store.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import type { Effect } from '../../kit/reconcile/reconciler.ts'
import { Server } from '../../resources/server/index.ts'
import { activeOperation, derivedStanza } from '../operation/stanza.ts'
import type { Parts } from '../parts.ts'

export interface ServerOperation {
  readonly namespace: string
  readonly serverId: string
  readonly kind: OperationKind
  /** `system:<component>`. */
  readonly actor: string
  readonly arguments: Readonly<Record<string, string>>
  /** Fields of the server's spec that change with it. */
  readonly spec?: Readonly<Record<string, unknown>>
}

/** Has it done to the server in the next turn. */
export const startServerOperation = (input: ServerOperation): Action => ({
  do: 'effect',
  name: 'order',
  input: { ...input },
})

/** Free when the server is busy, leaving or gone, and when somebody else has changed it. */
export const serverOperationEffect =
  ({ store, caches, clock }: Pick<Parts, 'store' | 'caches' | 'clock'>): Effect =>
  async (input) => {
    // plans of this folder write nothing else
    const { namespace, serverId, kind, actor, arguments: args, spec = {} } = input as unknown as ServerOperation
    const key = { namespace, name: serverId }
    const server = await store.get(Server, key)
    if (
      server === undefined ||
      server.metadata.deletionTimestamp !== undefined ||
      activeOperation(server) !== undefined
    )
      return undefined
    const { uid = '', generation = 0, resourceVersion } = server.metadata
    const stanza = derivedStanza(kind, {
      seed: `${uid}/${generation}`,
      actor,
      now: clock.now(),
      gibibytes: gibibytesOf(server.status ?? {}),
    })
    const operation = { ...stanza, arguments: replacing(server.spec.operation?.arguments ?? {}, args) }
    try {
      caches
        .of(Server)
        .apply(await store.patch(Server, key, { metadata: { resourceVersion }, spec: { ...spec, operation } }))
    } catch (error) {
      if (!isConflict(error)) throw error // somebody else was first
    }
    return undefined
  }
