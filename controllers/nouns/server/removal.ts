/** The end of a server: guest, disk, claims, name; in this order, each is removed before the next. */
import { defined } from '../../../domain/defined.ts'
import { keyOf, Secret } from '../../../kit/kube/object.ts'
import type { ServerAction } from './actions.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import type { Decision, ReconcileInput } from './decision.ts'
import { migrationKeyKey, storageKey, userDataKey, removeInstances } from './drafts.ts'
import { present } from '../../kit/operation/decision.ts'
import { isManagedUserData } from './rebuild/index.ts'
import type { ServerObject } from './observed.ts'
import { removeMigrationSecrets } from './migration/cutover.ts'

/** A server that was deleted through the API is deleted in Kubernetes first; the finalizer keeps it until its last
 *  reconcile. */
export const deleteObject = ({ metadata }: ServerObject): ServerAction => ({
  do: 'remove',
  type: Server,
  key: { ...defined({ namespace: metadata.namespace }), name: metadata.name },
})

/** Steps in order: the guests, the disk, what belongs to both, the claims. Nothing is released before the host has
 *  removed it. */
export function removal({ server, observed }: ReconcileInput): Decision {
  const { instance, targetInstance, strayInstances = [], storage, spareStorages = [], claims, accountId } = observed
  const instances = [...present(instance), ...present(targetInstance), ...strayInstances]
  if (instances.length > 0)
    return {
      state: 'deleting',
      step: 'instance',
      actions: removeInstances(instances),
      waitFor: 'the host to end the guest',
    }
  const storages = [...present(storage), ...spareStorages]
  if (storages.length > 0)
    return {
      state: 'deleting',
      step: 'storage',
      actions: storages.map((each) => ({ do: 'remove', type: Storage, key: keyOf(each) })),
      waitFor: 'the host to remove the disk',
    }
  const node = claims?.placement.node ?? server.status?.nodeName
  const copy: readonly ServerAction[] =
    server.spec.userDataSecretName !== undefined && node !== undefined
      ? [{ do: 'remove', type: Secret, key: userDataKey(server, node) }]
      : []
  const { userDataSecretName: secretName } = server.spec
  const own: readonly ServerAction[] =
    secretName !== undefined && isManagedUserData(server.metadata.name, secretName)
      ? [{ do: 'remove', type: Secret, key: { ...storageKey(server), name: secretName } }]
      : []
  // Also when it no longer holds anything: a change that was accepted since has its audit entry by then.
  const release: readonly ServerAction[] =
    accountId === undefined
      ? []
      : [{ do: 'effect', name: 'give_back', input: { accountId, serverId: server.metadata.name } }]
  return {
    state: 'deleting',
    step: 'released',
    outcome: 'succeeded',
    actions: [...copy, ...own, ...migrationSecretsOf(server, observed), ...release],
    isGone: true,
  }
}

/** Secrets of an interrupted move, on either side of its point of no return. */
function migrationSecretsOf(server: ServerObject, { claims }: ReconcileInput['observed']): readonly ServerAction[] {
  const { migration } = server.status ?? {}
  if (claims?.target === undefined)
    return migration?.state === 'switched' ? removeMigrationSecrets(server, migration) : []
  const nodes = [claims.placement.node, claims.target.node]
  return [...nodes.map((node) => migrationKeyKey(server, node)), userDataKey(server, claims.target.node)].map(
    (key) => ({
      do: 'remove',
      type: Secret,
      key,
    }),
  )
}
