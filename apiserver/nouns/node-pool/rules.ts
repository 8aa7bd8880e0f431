/** Rules of node pools about other resources, for every interface. */
import { requireMachinePlan } from '../../../changes/kit/machine.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { KUBERNETES_IMAGE_COMMAND, KUBERNETES_NODE_TEMPLATE } from '../../../domain/managed-machine/rules.ts'
import type { PoolBounds } from '../../../domain/node-pool/autoscaling/judge.ts'
import { badField, zoneLacks } from '../../../domain/problem.ts'
import { controlPlanesIn } from '../../../integrations/control-planes/configuration.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { offersKubernetesNodes } from '../../../resources/managed-machine/index.ts'
import type { AdmissionParts } from '../../kit/admission/kind.ts'
import { rehearseMachines } from '../managed-machine/index.ts'
import type { Parts } from '../../kit/parts.ts'
import type { Rename } from '../../kit/words.ts'

/** Throws 409 `zone_capability_missing` in a zone whose hosts lack the image of nodes. */
export function requireNodeImage({ caches }: Pick<Parts, 'caches'>, zone: string): void {
  if (offersKubernetesNodes(caches.of(Zone).get({ name: zone })?.status)) return
  throw zoneLacks(
    'kubernetes',
    `The hosts of zone ${zone} have no image for nodes. On each of them its operator runs: ${KUBERNETES_IMAGE_COMMAND}`,
  )
}

/** Throws 409 with the cause where nodes cannot reach a control plane in the zone's region, and Unavailable while its
 *  host does not answer. */
export async function requireReachable(
  { caches, controlPlanes = { obstacle: 'this cloud has none configured' } }: Pick<Parts, 'caches' | 'controlPlanes'>,
  zone: string,
): Promise<void> {
  const hosted = controlPlanesIn(controlPlanes, caches.of(Zone).get({ name: zone })?.spec.region ?? '')
  const obstacle = 'obstacle' in hosted ? hosted.obstacle : (await hosted.control.offer()).nodesObstacle
  if (obstacle !== '') throw zoneLacks('kubernetes', `Nodes cannot join: ${obstacle}.`)
}

/** Throws 400 for a plan that is unknown, or too small for a node. */
export const requireNodePlan = (parts: Pick<Parts, 'caches'>, plan: string, field = 'plan'): void =>
  void requireMachinePlan(worldOf(parts.caches), plan, field, KUBERNETES_NODE_TEMPLATE)

/** Throws 400 for a count that autoscaling would change at once. */
export function requireWithin(count: number, bounds: PoolBounds | null, field = 'count'): void {
  if (bounds !== null && (count < bounds.min || count > bounds.max))
    throw badField(field, `must be from ${bounds.min} to ${bounds.max}, as autoscaling has it`)
}

interface NodesRehearsal {
  readonly accountId: string
  readonly zone: string
  readonly networkId: string
  readonly plan: string
  readonly publicIpv4: boolean
  /** How many more there must be. */
  readonly count: number
  /** Of an existing pool. */
  readonly nodePoolId?: string
}

/** Claims everything that the servers of so many nodes need and releases it. Throws the refusals that their creation
 *  would get, in the words of the interface. */
export async function rehearseNodes(parts: AdmissionParts, rename: Rename, wanted: NodesRehearsal): Promise<void> {
  const { accountId, zone, networkId, plan, publicIpv4, count, nodePoolId } = wanted
  await rehearseMachines(parts, rename, {
    accountId,
    zone,
    ...(nodePoolId === undefined ? {} : { owner: { type: 'node_pool', id: nodePoolId } }),
    machines: Array.from({ length: Math.max(0, count) }, () => ({ plan, publicIpv4, networkIds: [networkId] })),
  })
}
