/** Fields of services and nodes of the cluster that the cloud controller reads. */
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'

export interface ServicePort {
  readonly name?: string
  /** TCP when absent. */
  readonly protocol?: string
  readonly port: number
  /** Absent, or 0, when the service has none. */
  readonly nodePort?: number
}
export interface ServiceSpec {
  readonly type?: string
  readonly ports?: readonly ServicePort[]
  readonly externalTrafficPolicy?: 'Cluster' | 'Local'
  readonly sessionAffinity?: string
  readonly loadBalancerSourceRanges?: readonly string[]
  /** Absent: handled by this controller. */
  readonly loadBalancerClass?: string
}
export interface Ingress {
  readonly ip?: string
  /** Proxy: pods connect to the balancer like everybody else. VIP: kube-proxy handles their connections in its place.
   */
  readonly ipMode?: 'VIP' | 'Proxy'
}
export interface ServiceStatus {
  readonly loadBalancer?: { readonly ingress?: readonly Ingress[] }
}
export type ServiceObject = KubeObject<ServiceSpec, ServiceStatus>
export const Service: ResourceType<ServiceSpec, ServiceStatus> = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  scope: 'Namespaced',
}

export interface NodeSpec {
  readonly providerID?: string
}
export interface NodeStatus {
  readonly conditions?: readonly { readonly type: string; readonly status: string }[]
}
export type NodeObject = KubeObject<NodeSpec, NodeStatus>
export const Node: ResourceType<NodeSpec, NodeStatus> = {
  group: '',
  version: 'v1',
  kind: 'Node',
  plural: 'nodes',
  scope: 'Cluster',
}
