import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { LoadBalancer } from '../../resources/load-balancer/index.ts'
import { loadBalancerAdmission } from './admission.ts'
import { loadBalancerEndpoints, type LoadBalancerParts } from './endpoints.ts'
import { type LoadBalancers, openLoadBalancers } from './load-balancers.ts'

export const loadBalancer = noun<LoadBalancerParts, { readonly loadBalancers: LoadBalancers }>({
  name: 'load_balancer',
  kinds: [kind(LoadBalancer, { access: 'write', target: 'load_balancer', admission: loadBalancerAdmission })],
  open: (parts: Parts) => ({ loadBalancers: openLoadBalancers(parts) }),
  endpoints: loadBalancerEndpoints,
})
