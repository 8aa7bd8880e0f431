/** Routers as requests find them, with what their view takes from their networks. */
import type { NetworkFacts } from '../../domain/network-rules.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { Network } from '../../resources/network/index.ts'
import {
  Router,
  routerFactsOf,
  type RouterSpec,
  type RouterStatus,
  type RouterView,
  toRouterView,
} from '../../resources/router/index.ts'
import { type OperatedObjects, openOperated } from '../change/operate.ts'
import type { ObjectParts } from '../plain/objects.ts'

export type RouterObject = KubeObject<RouterSpec, RouterStatus>
export type Routers = OperatedObjects<RouterSpec, RouterStatus, RouterView, NetworkFacts>

export function openRouters(parts: ObjectParts): Routers {
  const networks = parts.caches.of(Network)
  return openOperated(parts, {
    name: 'router',
    title: 'router',
    resource: Router,
    surroundingsOf: ({ metadata: { namespace = '' }, spec }: RouterObject) =>
      Object.fromEntries(spec.networkIds.map((networkId) => [networkId, networks.get({ namespace, name: networkId })])),
    toView: toRouterView,
    factsOf: routerFactsOf,
    fields: { zone: ({ zone }) => zone },
  })
}
