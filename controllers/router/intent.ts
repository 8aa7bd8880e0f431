/** How a change of a router that was left half-way is given back. */
import {
  releaseRouter,
  withdrawJoin,
  withdrawLeave,
  withdrawRouterEnd,
  withdrawRouterUpdate,
} from '../../db/router/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { isBeingDeleted } from '../../resources/operation/index.ts'
import { Router } from '../../resources/router/index.ts'
import type { IntentHandler } from '../controller.ts'
import { wasOperationApplied } from '../operation/intent.ts'
import type { RouterObject } from './observed.ts'

export const routerIntents: IntentHandler<RouterObject | undefined> = {
  resourceType: 'router',
  wasApplied: wasOperationApplied(Router),
  look: ({ store }, { accountId, resource }) =>
    store.get(Router, { namespace: accountNamespace(accountId), name: resource.id }),
  async release(tx, { accountId, resource, audit: { action, changes } }, stored) {
    const id = { accountId, routerId: resource.id }
    const has = (networkId: string) => stored?.spec.networkIds.includes(networkId) === true
    const [change] = changes
    const [before, after] = [idsOf(change?.before), idsOf(change?.after)]
    if (action === 'router.create') await releaseRouter(tx, id)
    if (action === 'router.update') await withdrawRouterUpdate(tx, id, stored?.spec)
    if (action === 'router.attach_network')
      for (const networkId of after.filter((one) => !before.includes(one)))
        await withdrawJoin(tx, { ...id, networkId }, has(networkId))
    if (action === 'router.detach_network')
      for (const networkId of before.filter((one) => !after.includes(one)))
        await withdrawLeave(tx, { ...id, networkId }, !has(networkId))
    if (action === 'router.delete') await withdrawRouterEnd(tx, id, stored === undefined || isBeingDeleted(stored))
  },
}

/** Of a change of `network_ids`. */
const idsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
