/** What is removed of an unfinished change of a server, besides what it claimed. */
import { serverChanges } from '../../../changes/server.ts'
import type { ChangeIntent } from '../../../db/change/index.ts'
import { Secret } from '../../../kit/kube/object.ts'
import { accountNamespace } from '../../../resources/index.ts'
import type { IntentHandler } from '../../kit/controller.ts'
import { intentOf } from '../../kit/changes.ts'
import type { ServerObject } from './observed.ts'

/** The Secret that the API server created for user data of the request; undefined when it created none. */
function userDataSecretOf({ audit: { action }, resource, operationId }: ChangeIntent): string | undefined {
  if (action === 'server.create') return `${resource.id}-user-data`
  return action === 'server.rebuild' ? `${resource.id}-user-data-${operationId}` : undefined
}

export const serverIntents: IntentHandler<ServerObject | undefined> = {
  ...intentOf(serverChanges),
  async removeObjects({ store }, intent) {
    const name = userDataSecretOf(intent)
    if (name !== undefined) await store.delete(Secret, { namespace: accountNamespace(intent.accountId), name })
  },
}
