import type { Sealing } from '../../../kit/sys/sealing.ts'
import type { Parts } from '../../kit/parts.ts'
import type { LoadBalancers } from './objects.ts'

/** What the endpoints of load balancers are built from. */
export type LoadBalancerParts = Parts & { readonly loadBalancers: LoadBalancers; readonly sealing: Sealing }
