/** The server controller: what wakes it, and what it registers. It reads by `observe.ts`, decides by `plan.ts` and acts
 *  by `effects.ts`. */
import { openClaimsReading } from '../../db/server/index.ts'
import { type Key, keyOf } from '../../kit/kube/object.ts'
import { type Watch, watch } from '../../kit/reconcile/reconciler.ts'
import { Plan, Template, Zone } from '../../resources/catalog/index.ts'
import { Instance, nodeNamespace, NodeReport, Volume } from '../../resources/instance/index.ts'
import { SERVER_FINALIZER } from '../../resources/labels.ts'
import { Node } from '../../resources/node/index.ts'
import { PublicPool } from '../../resources/public-pool/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { controller } from '../controller.ts'
import type { Parts } from '../parts.ts'
import type { ServerEffects } from './actions.ts'
import { serverEffects } from './effects.ts'
import { serverIntents } from './intent.ts'
import { observe } from './observe.ts'
import type { InstanceObject } from './observed.ts'
import { plan } from './plan.ts'

export { bootStorageName, migrationKeyKey } from './drafts.ts'
export { DOWNTIME_EXCEEDED } from './migration/cutover.ts'
export { isDeleting } from './observed.ts'

const ZONE_INDEX = 'zone'

export const serverController = controller<ServerEffects>()({
  name: 'server',
  resource: Server,
  sharding: 'by-zone',
  finalizer: SERVER_FINALIZER,
  intent: serverIntents,
  plan,
  open(parts: Parts) {
    const readings = { ...parts, claimsOf: openClaimsReading(parts.db) }
    return {
      watches: watches(parts),
      observe: (server) => observe(readings, server),
      effects: serverEffects(parts),
    }
  },
})

function watches({ caches }: Parts): readonly Watch[] {
  const instances = caches.of(Instance)
  const servers = caches.of(Server)
  servers.addIndex(ZONE_INDEX, ({ spec }) => [spec.zone])
  instances.addIndex('server', ({ spec }) => [spec.server.uid])
  const serverOf = ({ spec }: InstanceObject): Key => ({ namespace: spec.server.namespace, name: spec.server.name })
  return [
    watch(Instance, (instance) => [serverOf(instance)]),
    watch(Storage, ({ metadata: { namespace = '' }, spec }) =>
      spec.isBoot && spec.serverId !== undefined ? [{ namespace, name: spec.serverId }] : [],
    ),
    watch(Volume, ({ spec: { storage } }) => serverOfStorage(caches, storage)),
    watch(Node, ({ metadata }) => instances.inNamespace(nodeNamespace(metadata.name)).map(serverOf)),
    watch(NodeReport, ({ metadata: { namespace = '' } }) => instances.inNamespace(namespace).map(serverOf)),
    // Whether a prefix can be exchanged follows from the state of its pool.
    watch(PublicPool, ({ spec }) =>
      spec.use === 'server_ipv6_prefix' ? servers.by(ZONE_INDEX, spec.zone).map(keyOf) : [],
    ),
    ...[watch(Zone, () => []), watch(Plan, () => []), watch(Template, () => [])],
  ]
}

const serverOfStorage = (
  caches: Parts['caches'],
  { namespace, name }: Key & { readonly namespace: string },
): readonly Key[] => {
  const serverId = caches.of(Storage).get({ namespace, name })?.spec.serverId
  return serverId === undefined ? [] : [{ namespace, name: serverId }]
}
