/** Calls of the platform to the API of a cluster. The reader of each control plane runs them. */
import type { ControlPlanes } from '../../integrations/control-planes/control.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'
import { putJoinToken, removeJoinToken, removePerson, requestPersonToken, requestUserToken } from './cluster-objects.ts'
import type { KubeApi } from './kube-api.ts'
import {
  approveServing,
  drainNode,
  listNodes,
  listServingRequests,
  markNode,
  removeNode,
  uncordonNode,
} from './nodes.ts'
import { setAgent } from './platform-agent.ts'

/** Calls that use the API of a cluster, as its administrator. */
export function clusterCalls(
  apiOf: (id: string) => KubeApi,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Pick<
  ControlPlanes,
  | 'nodes'
  | 'userToken'
  | 'personToken'
  | 'removePerson'
  | 'joinToken'
  | 'removeJoinToken'
  | 'servingRequests'
  | 'approveServing'
  | 'markNode'
  | 'drain'
  | 'removeNode'
  | 'setAgent'
  | 'uncordon'
> {
  return {
    nodes: async (id) => listNodes(apiOf(id)),
    userToken: async (id, role, seconds) => requestUserToken(apiOf(id), role, seconds),
    personToken: async (id, person, seconds) => requestPersonToken(apiOf(id), person, seconds),
    removePerson: async (id, person) => removePerson(apiOf(id), person),
    joinToken: async (id, tokenId, pool, seconds) => {
      const expiresAt = new Date(clock.now().getTime() + seconds * 1_000)
      return putJoinToken(apiOf(id), { tokenId, pool, expiresAt, random })
    },
    removeJoinToken: async (id, tokenId, pool) => removeJoinToken(apiOf(id), tokenId, pool),
    servingRequests: async (id) => listServingRequests(apiOf(id)),
    approveServing: async (id, request) => approveServing(apiOf(id), request),
    markNode: async (id, node, marks) => markNode(apiOf(id), node, marks),
    drain: async (id, node) => drainNode(apiOf(id), node, { clock, random }),
    removeNode: async (id, node) => removeNode(apiOf(id), node),
    setAgent: async (id, objects) => setAgent(apiOf(id), objects),
    uncordon: async (id, node) => uncordonNode(apiOf(id), node),
  }
}
