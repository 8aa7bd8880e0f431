/** Private networks for requests, with what their view takes from the zone and from their router. */
import { idleFactsOf } from '../../../resources/operation/index.ts'
import type { IdleFacts } from '../../../domain/idle-rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { Edge } from '../../../resources/edge/index.ts'
import {
  Network,
  type NetworkSpec,
  type NetworkStatus,
  type NetworkSurroundings,
  type NetworkView,
  toNetworkView,
} from '../../../resources/network/index.ts'
import { Router } from '../../../resources/router/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import type { ObjectParts } from '../../kit/plain/objects.ts'

export type NetworkObject = KubeObject<NetworkSpec, NetworkStatus>
export type Networks = OperatedObjects<NetworkSpec, NetworkStatus, NetworkView, IdleFacts>

const ROUTERS_OF = 'routers of a network'
const EDGES_OF = 'edges of a network'
const SERVERS_OF = 'servers of a network'

export function openNetworks(parts: ObjectParts): Networks {
  const [zones, routers, edges] = [parts.caches.of(Zone), parts.caches.of(Router), parts.caches.of(Edge)]
  const servers = parts.caches.of(Server)
  routers.addIndex(ROUTERS_OF, ({ metadata: { namespace }, spec }) =>
    spec.networkIds.map((networkId) => `${namespace}/${networkId}`),
  )
  edges.addIndex(EDGES_OF, ({ metadata: { namespace }, spec }) => [`${namespace}/${spec.networkId}`])
  servers.addIndex(SERVERS_OF, ({ metadata: { namespace }, spec }) =>
    (spec.networks ?? []).map(({ networkId }) => `${namespace}/${networkId}`),
  )
  return openOperated(parts, {
    name: 'network',
    title: 'network',
    resource: Network,
    surroundingsOf: ({ metadata: { namespace, name }, spec }: NetworkObject): NetworkSurroundings => ({
      region: zones.get({ name: spec.zone })?.spec.region,
      routerId: routers.by(ROUTERS_OF, `${namespace}/${name}`)[0]?.metadata.name,
      edgeId: edges.by(EDGES_OF, `${namespace}/${name}`)[0]?.metadata.name,
      serverCount: servers.by(SERVERS_OF, `${namespace}/${name}`).length,
    }),
    toView: toNetworkView,
    factsOf: idleFactsOf,
    labelsOf: ({ labels }) => labels,
    fields: { zone: ({ zone }) => zone },
  })
}
