/** The managed load balancer of an edge with separate placement: its desired state, and whether it has that. Its
 *  machines, its addresses and its repair belong to the load balancer's controller. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../../domain/defined.ts'
import { balancerOf } from '../../../domain/edge/document.ts'
import { managedByOf } from '../../../domain/managed-machine/rules.ts'
import { derivedId } from '../../../domain/uuid.ts'
import { apiVersionOf, type KubeObject, keyOf } from '../../../kit/kube/object.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Edge, type EdgeStatus } from '../../../resources/edge/index.ts'
import { ACCOUNT_LABEL } from '../../../resources/kit/labels.ts'
import {
  configurationOf,
  LoadBalancer,
  type LoadBalancerSpec,
  type LoadBalancerStatus,
  numberOf,
} from '../../../resources/load-balancer/index.ts'
import type { PlainAction } from '../../kit/effects.ts'
import { grantedOf } from './machines.ts'
import type { EdgeObject } from './observed.ts'

export type PairObject = KubeObject<LoadBalancerSpec, LoadBalancerStatus>

/** The name of its LoadBalancer, in its namespace. */
export const pairIdOf = ({ metadata: { uid } }: Pick<EdgeObject, 'metadata'>): string =>
  derivedId(`load balancer of ${uid}`)

/** Its configuration follows that of the edge; the rest stays as it was created. Undefined when the edge has none. */
function specOf(edge: EdgeObject, pair: PairObject | undefined): LoadBalancerSpec | undefined {
  const { zone, networkId, members } = edge.spec
  const { plan, hasPair } = grantedOf(edge)
  if (!hasPair) return undefined
  const { frontends, backends } = balancerOf({ edgeId: edge.metadata.name, members })
  return {
    zone,
    networkId,
    name: `edge-${pairIdOf(edge)}`,
    plan: pair?.spec.plan ?? plan,
    publicIpv4: true,
    labels: {},
    isProtected: false,
    frontends: frontends.map((frontend) => ({
      ...frontend,
      certificateIds: [...frontend.certificateIds],
      allowedCidrs: [...frontend.allowedCidrs],
    })),
    backends: backends.map(({ healthCheck: _default, stickyCookie: _none, members: own, ...backend }) => ({
      ...backend,
      members: own.map((member) => ({ ...member })),
    })),
    certificates: [],
    managedBy: managedByOf({ type: 'edge', id: edge.metadata.name }),
  }
}

export interface PairPlan {
  readonly actions: readonly PlainAction[]
  /** It is as the edge requires and works; or there is none, as required. */
  readonly isSettled: boolean
  /** Completes "waiting for". */
  readonly waitFor: string
}

const SETTLED: PairPlan = { actions: [], isSettled: true, waitFor: '' }
const waiting = (waitFor: string, ...actions: readonly PlainAction[]): PairPlan => ({
  actions,
  isSettled: false,
  waitFor: `its load balancer ${waitFor}`,
})

/** What to do about it. A load balancer that could not be created is deleted and created again. */
export function planPair(edge: EdgeObject, pair: PairObject | undefined, accountId: string): PairPlan {
  const spec = specOf(edge, pair)
  if (pair === undefined) return spec === undefined ? SETTLED : waiting('to be made', ensured(edge, spec, accountId))
  if (pair.metadata.deletionTimestamp !== undefined) return waiting('to go')
  if (spec === undefined || isUnmade(pair))
    return waiting('to go', { do: 'remove', type: LoadBalancer, key: keyOf(pair) })
  const isAsWanted = isDeepStrictEqual(configurationOf(pair.spec), configurationOf(spec))
  if (!isAsWanted) return waiting('to have its configuration', ensured(edge, spec, accountId))
  const { isMade, isHealthy, healthDetail = '' } = pair.status ?? {}
  if (isMade !== true) return waiting('to run')
  if (!isApplied(pair)) return waiting('to run its configuration')
  return isHealthy === true ? SETTLED : waiting(`to be healthy: ${healthDetail}`)
}

const isUnmade = ({ spec, status }: PairObject): boolean =>
  status?.isMade !== true &&
  status?.operation?.status === 'failed' &&
  (spec.operation === undefined || status.operation.id === spec.operation.id)

const isApplied = ({ spec, status }: PairObject): boolean => isDeepStrictEqual(status?.applied, numberOf(spec))

const ensured = (edge: EdgeObject, spec: LoadBalancerSpec, accountId: string): PlainAction => {
  const { namespace = '', name, uid = '' } = edge.metadata
  // If the edge is ever deleted without its controller, the cluster's garbage collector deletes the load balancer.
  const owners = [{ apiVersion: apiVersionOf(Edge), kind: Edge.kind, name, uid, controller: true }]
  return {
    do: 'ensure',
    type: LoadBalancer,
    draft: {
      metadata: {
        name: pairIdOf(edge),
        namespace,
        labels: { [ACCOUNT_LABEL]: accountId },
        ownerReferences: owners,
        finalizers: [finalizerOf(LoadBalancer)],
      },
      spec,
    },
  }
}

/** A machine answers at its address. */
export const isServing = (pair: PairObject | undefined): boolean =>
  pair?.status?.isMade === true &&
  (pair.status.nodes ?? []).some(({ role, isHealthy }) => role === 'active' && isHealthy)

/** In the form of the status. */
export function pairViewOf(pair: PairObject | undefined): EdgeStatus['balancer'] {
  if (pair === undefined || pair.metadata.deletionTimestamp !== undefined) return undefined
  const { publicIpv4, publicIpv6, privateIpv4, privateIpv6, ...of } = pair.status ?? {}
  const { isHealthy = false, healthDetail = '', nodes = [] } = of
  const addresses = [publicIpv4, publicIpv6, privateIpv4, privateIpv6, ...nodes.flatMap((node) => node.addresses)]
  return {
    id: pair.metadata.name,
    isHealthy,
    healthDetail,
    ...defined({ publicIpv4 }),
    addresses: addresses.filter((address) => address !== undefined),
  }
}
