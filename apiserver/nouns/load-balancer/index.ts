import { loadBalancerChanges } from '../../../changes/load-balancer.ts'
import { kind } from '../../kit/admission/kind.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { objectFeed } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { listLoadBalancers, LoadBalancer, usesOfLoadBalancer } from '../../../resources/load-balancer/index.ts'
import { loadBalancerEndpoints, type LoadBalancerParts } from './endpoints.ts'
import { type LoadBalancers, openLoadBalancers } from './objects.ts'

export type { LoadBalancers } from './objects.ts'

export const loadBalancer = noun<LoadBalancerParts, { readonly loadBalancers: LoadBalancers }>({
  name: 'load_balancer',
  kinds: [
    kind(LoadBalancer, {
      access: 'write',
      target: 'load_balancer',
      admission: admissionOf(loadBalancerChanges),
      usesOf: usesOfLoadBalancer,
    }),
  ],
  open: (parts: Parts) => ({ loadBalancers: openLoadBalancers(parts) }),
  endpoints: loadBalancerEndpoints,
  feeds: ({ loadBalancers }) => [objectFeed('load_balancer', listLoadBalancers, loadBalancers.summaries)],
})
