/** Kinds of the host cluster that a control plane uses, and the fields of them that are read. */
import type { ResourceType } from '../../kit/kube/object.ts'

const namespaced =
  (group: string, version: string) =>
  <Spec = unknown, Status = unknown>(kind: string, plural: string): ResourceType<Spec, Status> => ({
    group,
    version,
    kind,
    plural,
    scope: 'Namespaced',
  })
const [core, apps] = [namespaced('', 'v1'), namespaced('apps', 'v1')]

/** Status of StatefulSets and Deployments. */
export interface RolloutStatus {
  readonly observedGeneration?: number
  readonly replicas?: number
  readonly updatedReplicas?: number
  readonly readyReplicas?: number
  readonly availableReplicas?: number
}

export const Namespace: ResourceType = { ...core('Namespace', 'namespaces'), scope: 'Cluster' }
export const Service = core<
  { readonly clusterIP?: string; readonly ports?: readonly { readonly name?: string; readonly nodePort?: number }[] },
  { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] } }
>('Service', 'services')
export const Secret = core('Secret', 'secrets')
export const ResourceQuota = core('ResourceQuota', 'resourcequotas')
export const PersistentVolumeClaim = core('PersistentVolumeClaim', 'persistentvolumeclaims')
export const Pod = core<
  { readonly nodeName?: string },
  { readonly podIP?: string; readonly phase?: string; readonly reason?: string }
>('Pod', 'pods')
export const HostNode: ResourceType<
  { readonly unschedulable?: boolean },
  {
    readonly allocatable?: Readonly<Record<string, string>>
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
> = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' }
export const StatefulSet = apps<{ readonly replicas?: number }, RolloutStatus>('StatefulSet', 'statefulsets')
export const Deployment = apps<{ readonly replicas?: number }, RolloutStatus>('Deployment', 'deployments')
export const Job = namespaced('batch', 'v1')<unknown, { readonly succeeded?: number; readonly failed?: number }>(
  'Job',
  'jobs',
)
export const NetworkPolicy = namespaced('networking.k8s.io', 'v1')('NetworkPolicy', 'networkpolicies')
export const PodDisruptionBudget = namespaced('policy', 'v1')('PodDisruptionBudget', 'poddisruptionbudgets')
export const RoleBinding = namespaced('rbac.authorization.k8s.io', 'v1')<undefined, undefined>(
  'RoleBinding',
  'rolebindings',
)

/** The desired state of one object. */
export interface Manifest {
  readonly type: ResourceType
  readonly object: {
    readonly metadata: {
      readonly name: string
      readonly namespace?: string
      readonly labels?: Readonly<Record<string, string>>
    }
    readonly spec?: object
    readonly data?: Readonly<Record<string, string>>
    readonly [field: string]: unknown
  }
}
