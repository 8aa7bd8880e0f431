/** Routers for requests, with what their view takes from their networks. */
import { idleFactsOf } from '../../../resources/operation/index.ts'
import type { IdleFacts } from '../../../domain/idle-rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Network } from '../../../resources/network/index.ts'
import {
  Router,
  type RouterSpec,
  type RouterStatus,
  type RouterView,
  toRouterView,
} from '../../../resources/router/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import type { ObjectParts } from '../../kit/plain/objects.ts'

export type RouterObject = KubeObject<RouterSpec, RouterStatus>
export type Routers = OperatedObjects<RouterSpec, RouterStatus, RouterView, IdleFacts>

export function openRouters(parts: ObjectParts): Routers {
  const networks = parts.caches.of(Network)
  return openOperated(parts, {
    name: 'router',
    title: 'router',
    resource: Router,
    surroundingsOf: ({ metadata: { namespace = '' }, spec }: RouterObject) =>
      Object.fromEntries(spec.networkIds.map((networkId) => [networkId, networks.get({ namespace, name: networkId })])),
    toView: toRouterView,
    factsOf: idleFactsOf,
    fields: { zone: ({ zone }) => zone },
  })
}
