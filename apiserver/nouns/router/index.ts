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
  getRouter,
  listRouters,
  toRouterView,
  usesOfRouter,
} from '../../../resources/router/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import { type ObjectParts, getObject, listObjects } from '../../kit/plain/objects.ts'
import { routerChanges } from '../../../changes/router.ts'
import { kind } from '../../kit/admission/kind.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { keysOf, objectFeed, sourceOf } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'

type RouterObject = KubeObject<RouterSpec, RouterStatus>
type Routers = OperatedObjects<RouterSpec, RouterStatus, RouterView, IdleFacts>

const ROUTERS_OF_NETWORK = 'routers of their networks'

function openRouters(parts: ObjectParts): Routers {
  const networks = parts.caches.of(Network)
  parts.caches
    .of(Router)
    .addIndex(ROUTERS_OF_NETWORK, ({ metadata: { namespace }, spec }) =>
      spec.networkIds.map((networkId) => `${namespace}/${networkId}`),
    )
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

export const router = noun<Parts & { readonly routers: Routers }, { readonly routers: Routers }>({
  name: 'router',
  kinds: [
    kind(Router, { access: 'write', target: 'router', admission: admissionOf(routerChanges), usesOf: usesOfRouter }),
  ],
  open: (parts) => ({ routers: openRouters(parts) }),
  endpoints: ({ routers, ...parts }) => [
    getObject(routers, getRouter),
    listObjects(parts, routers, listRouters, ({ zone }) => ({ fields: { zone } })),
    ...changeEndpoints(parts, routerChanges, routers),
  ],
  feeds: ({ routers, caches }) => [
    objectFeed('router', listRouters, routers, [
      sourceOf(caches.of(Network), ({ metadata: { namespace, name } }) =>
        keysOf(routers.cache.by(ROUTERS_OF_NETWORK, `${namespace}/${name}`)),
      ),
    ]),
  ],
})
