/** The shape of every Kubernetes object, and what the client needs to know of a kind to access it. */

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly managedFields?: readonly {
    readonly manager?: string
    readonly operation?: string
    readonly subresource?: string
    readonly time?: string
    readonly fieldsV1?: unknown
  }[]
}

export interface KubeObject<Spec = unknown, Status = unknown> {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly spec: Spec
  readonly status?: Status
  /** Secret and ConfigMap only, which have no spec; a Secret's values are base64. */
  readonly data?: Readonly<Record<string, string>>
}

/** What the client needs to access a kind. The definitions in `resources/` have this shape. */
export interface ResourceType<Spec = unknown, Status = unknown> {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly scope: 'Namespaced' | 'Cluster'
  /** Never present: carries the types of spec and status. */
  readonly types?: { readonly spec: Spec; readonly status: Status }
}

export interface Key {
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string
  readonly name: string
}

export const keyOf = (object: KubeObject): Key =>
  object.metadata.namespace === undefined
    ? { name: object.metadata.name }
    : { namespace: object.metadata.namespace, name: object.metadata.name }
/** As one text, which `keyFromText` reads. */
export const keyText = (key: Key): string => (key.namespace === undefined ? key.name : `${key.namespace}/${key.name}`)
export function keyFromText(text: string): Key {
  const slash = text.indexOf('/')
  return slash < 0 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}
export const apiVersionOf = (type: ResourceType): string =>
  type.group === '' ? type.version : `${type.group}/${type.version}`

/** Built-in kinds that the platform uses; their payload is not under `spec`, so they are read through their own
 *  fields. */
export const Namespace: ResourceType<object> = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  scope: 'Cluster',
}
export const Secret: ResourceType<undefined, undefined> = {
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  scope: 'Namespaced',
}
export const RoleBinding: ResourceType<undefined, undefined> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
  scope: 'Namespaced',
}
export const ResourceQuota: ResourceType<{ readonly hard: Readonly<Record<string, string>> }> = {
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  scope: 'Namespaced',
}
/** Events of the newer group; those of the core group are the same objects. */
export const Event: ResourceType<undefined, undefined> = {
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  scope: 'Namespaced',
}
export interface LeaseSpec {
  /** Absent or empty: nobody holds it. */
  readonly holderIdentity?: string
  readonly leaseDurationSeconds?: number
  /** RFC 3339 with microseconds. */
  readonly acquireTime?: string
  readonly renewTime?: string
  readonly leaseTransitions?: number
}
export const Lease: ResourceType<LeaseSpec> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
}
export const CustomResourceDefinition = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
} as const
