/** The node controller: its watches and its registration. `observe.ts` reads, `plan.ts` decides, `effects.ts` acts. */
import { Lease, Namespace, Secret } from '../../../kit/kube/object.ts'
import { type Watch, watch } from '../../../kit/reconcile/reconciler.ts'
import { Plan } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import {
  Instance,
  nodeOf,
  nodeOfNamespace,
  NodeReport,
  Observation,
  Volume,
} from '../../../resources/instance/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { controller } from '../../kit/controller.ts'
import type { Parts } from '../../kit/parts.ts'
import type { NodeEffects } from './actions.ts'
import { type FencingAccess, nodeEffects } from './effects.ts'
import { heartbeats, heldReports, observe } from './observe.ts'
import { needsServers } from './observed.ts'
import { plan } from './plan.ts'

export type { FencingAccess } from './effects.ts'
export { readGuests, readStorages } from './observe.ts'
export { isCompute, type NodeObject } from './observed.ts'

export const nodeController = controller<NodeEffects>()({
  name: 'node',
  resource: Node,
  sharding: 'by-zone',
  finalizer: finalizerOf(Node),
  plan,
  reads: [NodeReport, Lease, Plan],
  writes: [Namespace, Secret, Observation],
  // Servers and storages get operations; objects of a lost node are released from their agent.
  patches: [Server, Storage, Instance, Volume],
  open(parts: Parts & FencingAccess) {
    const listen = { heartbeat: heartbeats(parts.clock), held: heldReports(parts.clock) }
    return {
      watches: watches(parts),
      observe: (node) => observe(parts, listen, node),
      effects: nodeEffects(parts),
    }
  },
})

function watches({ caches }: Parts): readonly Watch[] {
  const nodesOf = (namespace = '') =>
    [nodeOfNamespace(namespace)].flatMap((name) => (name === undefined ? [] : [{ name }]))
  const whenServersMatter = (name: string | undefined) => {
    const node = name === undefined ? undefined : caches.of(Node).get({ name })
    return node !== undefined && needsServers(node) ? [{ name: node.metadata.name }] : []
  }
  return [
    watch(NodeReport, ({ metadata }) => nodesOf(metadata.namespace)),
    watch(Lease, ({ metadata }) => nodesOf(metadata.namespace)),
    watch(Namespace, ({ metadata }) => nodesOf(metadata.name)),
    watch(Server, ({ status }) => [
      ...whenServersMatter(status?.nodeName),
      ...whenServersMatter(status?.migration?.sourceNode),
    ]),
    watch(Instance, (instance) => whenServersMatter(nodeOf(instance))),
    watch(Volume, (volume) => whenServersMatter(nodeOf(volume))),
    watch(Observation, ({ metadata }) => [{ name: metadata.name }]),
    watch(Plan, () => []),
    watch(Storage, ({ status }) => whenServersMatter(status?.nodeName)),
  ]
}
