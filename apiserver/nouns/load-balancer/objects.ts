/** Load balancers for requests. */
import type { LoadBalancerFacts } from '../../../domain/load-balancer/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import {
  LoadBalancer,
  loadBalancerFactsOf,
  type LoadBalancerSpec,
  type LoadBalancerStatus,
  type LoadBalancerSummary,
  type LoadBalancerView,
  toLoadBalancerSummary,
  toLoadBalancerView,
} from '../../../resources/load-balancer/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import { type ObjectParts, type Objects, openObjects } from '../../kit/plain/objects.ts'

export type LoadBalancerObject = KubeObject<LoadBalancerSpec, LoadBalancerStatus>
export interface LoadBalancers
  extends OperatedObjects<LoadBalancerSpec, LoadBalancerStatus, LoadBalancerView, LoadBalancerFacts> {
  /** In the form of lists. */
  readonly summaries: Objects<LoadBalancerSpec, LoadBalancerStatus, LoadBalancerSummary>
}

export function openLoadBalancers(parts: ObjectParts): LoadBalancers {
  const shared = {
    name: 'load_balancer',
    title: 'load balancer',
    resource: LoadBalancer,
    surroundingsOf: () => ({}),
    labelsOf: ({ labels }: LoadBalancerSpec) => labels,
    fields: { zone: ({ zone }: LoadBalancerSpec) => zone },
  } as const
  const summaries = openObjects(parts, { ...shared, toView: toLoadBalancerSummary })
  const balancers = openOperated(parts, {
    ...shared,
    fields: {},
    labelsOf: () => ({}),
    toView: toLoadBalancerView,
    factsOf: loadBalancerFactsOf,
  })
  return { ...balancers, summaries }
}
