/** The effect `order`: a node has something done to a server. It is one conditional patch with a stanza, which the
 *  server's own reconciler finds, audits and carries out; a server that is busy is left alone until the next
 *  reconcile. */
import { gibibytesOf } from '../../domain/migration-policies.ts'
import { replacing } from '../../kit/kube/merge-patch.ts'
import { isConflict } from '../../kit/kube/store.ts'
import { Server } from '../../resources/server/index.ts'
import { activeOperation, derivedStanza } from '../operation/stanza.ts'
import type { EffectOn } from '../effects.ts'
import type { Parts } from '../parts.ts'
import type { NodeAction, ServerOperation } from './actions.ts'

/** Has it done to the server in the next reconcile. */
export const startServerOperation = (input: ServerOperation): NodeAction => ({ do: 'effect', name: 'order', input })

/** Free when the server is busy, leaving or gone, and when somebody else has changed it. */
export const serverOperationEffect =
  ({ store, caches, clock }: Pick<Parts, 'store' | 'caches' | 'clock'>): EffectOn<ServerOperation, unknown, unknown> =>
  async ({ namespace, serverId, kind, actor, arguments: args, spec = {} }) => {
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
