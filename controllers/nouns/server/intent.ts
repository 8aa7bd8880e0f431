/** How an unfinished change of a server shows, and which part of it is released. */
import { endSizeChange, releaseServer } from '../../../db/server/index.ts'
import type { ChangeIntent } from '../../../db/change/index.ts'
import { withdrawInterface } from '../../../db/network-interface/index.ts'
import { Secret } from '../../../kit/kube/object.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Server } from '../../../resources/server/index.ts'
import type { IntentHandler } from '../../kit/controller.ts'
import { wasOperationApplied } from '../../kit/operation/intent.ts'
import type { ServerObject } from './observed.ts'

const idOf = ({ accountId, resource }: ChangeIntent) => ({ accountId, serverId: resource.id })

/** The Secret that the API server created for user data of the request; undefined when it created none. */
function userDataSecretOf({ audit: { action }, resource, operationId }: ChangeIntent): string | undefined {
  if (action === 'server.create') return `${resource.id}-user-data`
  return action === 'server.rebuild' ? `${resource.id}-user-data-${operationId}` : undefined
}

export const serverIntents: IntentHandler<ServerObject | undefined> = {
  resourceType: 'server',
  wasApplied: wasOperationApplied(Server),
  async removeObjects({ store }, intent) {
    const name = userDataSecretOf(intent)
    if (name !== undefined) await store.delete(Secret, { namespace: accountNamespace(intent.accountId), name })
  },
  look: ({ store }, { accountId, resource }) =>
    store.get(Server, { namespace: accountNamespace(accountId), name: resource.id }),
  async release(tx, intent, stored) {
    const { action } = intent.audit
    if (action === 'server.create') await releaseServer(tx, idOf(intent))
    if (action === 'server.attach_network') {
      const [change] = intent.audit.changes
      const networkId = change?.after
      if (typeof networkId === 'string')
        await withdrawInterface(
          tx,
          { ...idOf(intent), networkId },
          stored?.spec.networks?.some((entry) => entry.networkId === networkId) === true,
        )
    }
    if (action === 'server.change_plan')
      await endSizeChange(tx, { ...idOf(intent), operationId: intent.operationId, isDone: false })
  },
}
