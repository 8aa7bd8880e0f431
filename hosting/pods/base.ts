/** The objects of a control plane in the host cluster besides its pods: a separate namespace, its limits, network
 *  policies and services. Pure. */
import {
  type Manifest,
  Namespace,
  NetworkPolicy,
  PodDisruptionBudget,
  ResourceQuota,
  RoleBinding,
  Secret,
  Service,
} from './kinds.ts'
import {
  ADDON_PARTS,
  API,
  ETCD,
  MANAGED_BY,
  MANAGER,
  namespaceOf,
  PART_LABEL,
  PLANE_LABEL,
  PORTS,
  READER,
  RESTORE,
  SCHEDULER,
} from './names.ts'
import type { PodsRecord } from './record.ts'
import { addonsOf, type HostSettings } from './settings.ts'
import { quotaOf } from './sizes.ts'

export const labelsOf = ({ desired }: Pick<PodsRecord, 'desired'>): Readonly<Record<string, string>> => ({
  [MANAGED_BY]: 'svccloud',
  [PLANE_LABEL]: desired.id,
})

/** Metadata of an object in its namespace. */
export const metadataOf = (record: Pick<PodsRecord, 'desired'>, name: string) => ({
  name,
  namespace: namespaceOf(record.desired.id),
  labels: labelsOf(record),
})

/** Must be applied first: all other objects need the namespace. */
export function namespaceManifests(record: PodsRecord, { rights }: HostSettings): readonly Manifest[] {
  const name = namespaceOf(record.desired.id)
  const namespace: Manifest = {
    type: Namespace,
    object: { metadata: { name, labels: { ...labelsOf(record), 'pod-security.kubernetes.io/enforce': 'restricted' } } },
  }
  if (rights === undefined) return [namespace]
  const binding: Manifest = {
    type: RoleBinding,
    object: {
      metadata: metadataOf(record, 'host'),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: rights.clusterRole },
      subjects: [{ kind: 'ServiceAccount', name: rights.serviceAccount, namespace: rights.namespace }],
    },
  }
  return [namespace, binding]
}

export const baseManifests = (record: PodsRecord, settings: HostSettings): readonly Manifest[] => [
  {
    type: ResourceQuota,
    object: { metadata: metadataOf(record, 'bounds'), spec: { hard: quotaOf(wantedOf(record, settings)) } },
  },
  ...policies(record, settings),
  ...services(record, settings),
  ...[ETCD, API].map((part) => budget(record, part)),
]

const wantedOf = ({ desired: { replicas } }: PodsRecord, settings: HostSettings) => ({
  replicas,
  addons: addonsOf(settings),
})

/** Only one pod at a time may be evicted when nodes of the host cluster are drained. */
const budget = (record: PodsRecord, part: string): Manifest => ({
  type: PodDisruptionBudget,
  object: { metadata: metadataOf(record, part), spec: { maxUnavailable: 1, selector: selectorOf(part) } },
})

export const selectorOf = (part: string) => ({ matchLabels: { [PART_LABEL]: part } })
const podsOf = (...parts: readonly string[]) => ({
  podSelector: { matchExpressions: [{ key: PART_LABEL, operator: 'In', values: parts }] },
})
const on = (...ports: readonly number[]) => ports.map((port) => ({ port, protocol: 'TCP' }))
const NAMES = [
  { port: 53, protocol: 'UDP' },
  { port: 53, protocol: 'TCP' },
]

/** Denies all connections that are not listed here. Clients and nodes reach the API and the tunnel from everywhere.
 *  Kubelets always reach the pods on their node. */
function policies(record: PodsRecord, { from, platform }: HostSettings): readonly Manifest[] {
  const policy = (name: string, parts: readonly string[], spec: object): Manifest => ({
    type: NetworkPolicy,
    object: {
      metadata: metadataOf(record, name),
      spec: { ...(parts.length === 0 ? { podSelector: {} } : podsOf(...parts)), ...spec },
    },
  })
  const etcd = podsOf(ETCD)
  return [
    policy('closed', [], { policyTypes: ['Ingress', 'Egress'], egress: [{ ports: NAMES }] }),
    policy('etcd', [ETCD], {
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        { from: [etcd], ports: on(PORTS.etcdPeer) },
        { from: [podsOf(API, READER)], ports: on(PORTS.etcdClient) },
      ],
      egress: [{ to: [etcd], ports: on(PORTS.etcdPeer) }],
    }),
    policy('restore', [RESTORE], { policyTypes: ['Ingress'], ingress: [{ from, ports: on(PORTS.receiver) }] }),
    policy('api', [API], {
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ ports: on(PORTS.api, PORTS.tunnel) }],
      egress: [{ to: [etcd], ports: on(PORTS.etcdClient) }],
    }),
    policy('reader', [READER], {
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from, ports: on(PORTS.reader) }],
      egress: [
        { to: [podsOf(API)], ports: on(PORTS.api) },
        { to: [etcd], ports: on(PORTS.etcdClient) },
      ],
    }),
    policy('controllers', [MANAGER, SCHEDULER, ...ADDON_PARTS], {
      policyTypes: ['Egress'],
      egress: [{ to: [podsOf(API)], ports: on(PORTS.api) }],
    }),
    policy('addons', ADDON_PARTS, {
      policyTypes: ['Egress'],
      // The API server would drop an empty list, which would look like a change each time.
      ...(platform === undefined ? {} : { egress: [{ ...toOf(platform), ports: on(platform.port) }] }),
    }),
  ]
}

/** No restriction when `to` is empty: then it may be anywhere. */
const toOf = ({ to }: NonNullable<HostSettings['platform']>) => (to.length === 0 ? {} : { to })

function services(record: PodsRecord, { endpoint }: HostSettings): readonly Manifest[] {
  const port = (name: string, number: number) => ({ name, port: number, targetPort: number, protocol: 'TCP' })
  const service = (name: string, part: string, spec: object, more: object = {}): Manifest => ({
    type: Service,
    object: {
      metadata: { ...metadataOf(record, name), ...more },
      spec: { selector: selectorOf(part).matchLabels, ...spec },
    },
  })
  const client = port('client', PORTS.etcdClient)
  const api = port('api', PORTS.api)
  // A restored control plane gets its old port back, if it is free.
  const atPort = endpoint.type === 'NodePort' && record.nodePort !== null ? { nodePort: record.nodePort } : {}
  return [
    service(ETCD, ETCD, {
      clusterIP: 'None',
      publishNotReadyAddresses: true,
      ports: [client, port('peer', PORTS.etcdPeer)],
    }),
    service('etcd-client', ETCD, { type: 'ClusterIP', ports: [client] }),
    service(
      API,
      API,
      {
        type: endpoint.type,
        ipFamilyPolicy: 'PreferDualStack',
        ports: [{ ...api, ...atPort }, port('tunnel', PORTS.tunnel)],
      },
      endpoint.type === 'LoadBalancer' ? { annotations: endpoint.annotations } : {},
    ),
  ]
}

/** The files of one part in a Secret, by name. */
export const secretManifest = (
  record: PodsRecord,
  part: string,
  files: Readonly<Record<string, string>>,
): Manifest => ({
  type: Secret,
  object: {
    metadata: metadataOf(record, part),
    data: Object.fromEntries(Object.entries(files).map(([name, text]) => [name, Buffer.from(text).toString('base64')])),
  },
})
