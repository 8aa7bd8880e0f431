/** Floating IPs as requests find them. */
import type { FloatingIpFacts } from '../../domain/floating-ip.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import {
  FloatingIp,
  floatingIpFactsOf,
  type FloatingIpSpec,
  type FloatingIpStatus,
  type FloatingIpView,
  toFloatingIpView,
} from '../../resources/floating-ip/index.ts'
import { type OperatedObjects, openOperated } from '../change/operate.ts'
import type { ObjectParts } from '../plain/objects.ts'

export type FloatingIpObject = KubeObject<FloatingIpSpec, FloatingIpStatus>
export type FloatingIps = OperatedObjects<FloatingIpSpec, FloatingIpStatus, FloatingIpView, FloatingIpFacts>

export const openFloatingIps = (parts: ObjectParts): FloatingIps =>
  openOperated(parts, {
    name: 'floating_ip',
    title: 'floating IP',
    resource: FloatingIp,
    surroundingsOf: () => ({}),
    toView: toFloatingIpView,
    factsOf: floatingIpFactsOf,
  })
