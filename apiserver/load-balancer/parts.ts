import type { Sealing } from '../../kit/sys/sealing.ts'
import type { Parts } from '../parts.ts'
import type { LoadBalancers } from './load-balancers.ts'

/** What the endpoints of load balancers are built from. */
export type LoadBalancerParts = Parts & { readonly loadBalancers: LoadBalancers; readonly sealing: Sealing }
