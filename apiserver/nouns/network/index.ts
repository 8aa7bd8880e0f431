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
  getNetwork,
  listNetworks,
  toNetworkView,
} from '../../../resources/network/index.ts'
import { Router } from '../../../resources/router/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import { type ObjectParts, getObject, labelsOfQuery, listObjects } from '../../kit/plain/objects.ts'
import { networkChanges } from '../../../changes/network.ts'
import { kind } from '../../kit/admission/kind.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { besides, objectFeed, sourceOf, zonesOf } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'

type NetworkObject = KubeObject<NetworkSpec, NetworkStatus>
export type Networks = OperatedObjects<NetworkSpec, NetworkStatus, NetworkView, IdleFacts>

const ROUTERS_OF = 'routers of a network'
const EDGES_OF = 'edges of a network'
const SERVERS_OF = 'servers of a network'

function openNetworks(parts: ObjectParts): Networks {
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

export const network = noun<Parts & { readonly networks: Networks }, { readonly networks: Networks }>({
  name: 'network',
  kinds: [kind(Network, { access: 'write', target: 'network', admission: admissionOf(networkChanges) })],
  open: (parts) => ({ networks: openNetworks(parts) }),
  endpoints: ({ networks, ...parts }) => [
    getObject(networks, getNetwork),
    listObjects(parts, networks, listNetworks, ({ zone, label }) => ({
      labels: labelsOfQuery(label),
      fields: { zone },
    })),
    ...changeEndpoints(parts, networkChanges, networks),
  ],
  feeds: ({ networks, caches }) => [
    objectFeed('network', listNetworks, networks, [
      sourceOf(
        caches.of(Router),
        besides(({ spec }) => spec.networkIds),
        { part: ({ spec }) => spec.networkIds },
      ),
      sourceOf(
        caches.of(Edge),
        besides(({ spec }) => [spec.networkId]),
        { part: ({ spec }) => spec.networkId },
      ),
      sourceOf(
        caches.of(Server),
        besides(({ spec }) => (spec.networks ?? []).map(({ networkId }) => networkId)),
        { part: ({ spec }) => spec.networks },
      ),
      zonesOf(caches),
    ]),
  ],
})
