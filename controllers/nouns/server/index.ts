/** The server controller: its watches and its registration. `observe.ts` reads, `plan.ts` decides, `effects.ts`
 *  acts. */
import { openClaimsReading } from '../../../db/server/index.ts'
import { FloatingIp } from '../../../resources/floating-ip/index.ts'
import { type Key, keyOf, Secret } from '../../../kit/kube/object.ts'
import { type Watch, watch } from '../../../kit/reconcile/reconciler.ts'
import { Plan, Template, Zone } from '../../../resources/catalog/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Instance, nodeNamespace, NodeReport, Volume } from '../../../resources/instance/index.ts'
import { ManagedMachine } from '../../../resources/managed-machine/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { PublicPool } from '../../../resources/public-pool/index.ts'
import { Router } from '../../../resources/router/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { controller } from '../../kit/controller.ts'
import type { Parts } from '../../kit/parts.ts'
import type { ServerEffects } from './actions.ts'
import { serverEffects } from './effects.ts'
import { serverIntents } from './intent.ts'
import { NETWORKS_OF_ROUTER, observe } from './observe.ts'
import type { InstanceObject } from './observed.ts'
import { plan } from './plan.ts'
import type { ProgrammedServers } from './network-effect.ts'

export { publicInterface } from './addresses.ts'
export { bootStorageName, migrationKeyKey } from './drafts.ts'
export { DOWNTIME_EXCEEDED } from './migration/cutover.ts'
export { isDeleting } from './observed.ts'
export { hasEnded } from './power/index.ts'
export { isGuestLeftToItsNode } from './recovery/force-release.ts'

const ZONE_INDEX = 'zone'
const NETWORK_INDEX = 'network'

export const serverController = controller<ServerEffects>()({
  name: 'server',
  resource: Server,
  sharding: 'by-zone',
  finalizer: finalizerOf(Server),
  intent: serverIntents,
  plan,
  reads: [
    FloatingIp,
    ManagedMachine,
    Network,
    Node,
    NodeReport,
    PublicPool,
    Router,
    Zone,
    Plan,
    Template,
    CustomImage,
    Volume,
  ],
  // A server whose operation is its deletion is deleted here.
  writes: [Server, Storage, Instance, Secret],
  open(parts: Parts) {
    const programmed: ProgrammedServers = new Map()
    const readings = { ...parts, claimsOf: openClaimsReading(parts.db), programmed }
    return {
      watches: watches(parts),
      observe: (server) => observe(readings, server),
      effects: serverEffects(parts, programmed),
    }
  },
})

function watches({ caches }: Parts): readonly Watch[] {
  const instances = caches.of(Instance)
  const servers = caches.of(Server)
  servers.addIndex(ZONE_INDEX, ({ spec }) => [spec.zone])
  caches
    .of(Router)
    .addIndex(NETWORKS_OF_ROUTER, ({ metadata: { namespace }, spec }) =>
      spec.networkIds.map((networkId) => `${namespace}/${networkId}`),
    )
  servers.addIndex(NETWORK_INDEX, ({ metadata: { namespace }, spec: { networks = [] } }) =>
    networks.map(({ networkId }) => `${namespace}/${networkId}`),
  )
  instances.addIndex('server', ({ spec }) => [spec.server.uid])
  const serverOf = ({ spec }: InstanceObject): Key => ({ namespace: spec.server.namespace, name: spec.server.name })
  return [
    watch(Instance, (instance) => [serverOf(instance)]),
    // The health of the machine ends the trial of a new boot storage.
    watch(ManagedMachine, ({ spec: { server } }) => [{ namespace: server.namespace, name: server.name }]),
    watch(Storage, ({ metadata: { namespace = '' }, spec, status }) =>
      [...new Set([spec.serverId, status?.serverId])].flatMap((name) =>
        name === undefined ? [] : [{ namespace, name }],
      ),
    ),
    watch(Volume, ({ spec: { storage } }) => serverOfStorage(caches, storage)),
    watch(Node, ({ metadata }) => instances.inNamespace(nodeNamespace(metadata.name)).map(serverOf)),
    watch(NodeReport, ({ metadata: { namespace = '' } }) => instances.inNamespace(namespace).map(serverOf)),
    // The state of a prefix's pool decides whether the prefix can be replaced.
    watch(PublicPool, ({ spec }) =>
      spec.use === 'server_ipv6_prefix' ? servers.by(ZONE_INDEX, spec.zone).map(keyOf) : [],
    ),
    watch(Zone, () => []),
    watch(Plan, () => []),
    watch(Template, () => []),
    watch(CustomImage, () => []),
    watch(Network, () => []),
    watch(FloatingIp, () => []),
    // Its static routes decide which networks a server may send for.
    watch(Router, ({ metadata: { namespace }, spec: { networkIds, staticRoutes }, status }) =>
      staticRoutes.length === 0 && (status?.asked?.staticRoutes ?? []).length === 0
        ? []
        : [...networkIds, ...(status?.networks ?? []).map(({ networkId }) => networkId)].flatMap((networkId) =>
            servers.by(NETWORK_INDEX, `${namespace}/${networkId}`).map(keyOf),
          ),
    ),
  ]
}

const serverOfStorage = (
  caches: Parts['caches'],
  { namespace, name }: Key & { readonly namespace: string },
): readonly Key[] => {
  const { spec, status } = caches.of(Storage).get({ namespace, name }) ?? {}
  const serverId = spec?.serverId ?? status?.serverId
  return serverId === undefined ? [] : [{ namespace, name: serverId }]
}
