/** The rights of the controllers in Kubernetes: the chart's roles contain these rules. They are derived from what each
 *  controller registers to read and write, and from what the process does besides. */
import { Event, Lease, Namespace, ResourceQuota, type ResourceType, Secret } from '../kit/kube/object.ts'
import { Operation } from '../resources/operation/index.ts'
import { BILLING_KINDS } from './nouns/billing/index.ts'
import { CATALOG_KINDS } from './nouns/catalog/index.ts'
import type { Registration } from './kit/controller.ts'

/** A rule of a ClusterRole. */
export interface AccessRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

interface Grant {
  readonly type: ResourceType
  readonly subresource?: 'status'
  readonly verbs: readonly string[]
}

/** In the order in which rules name them. */
const VERBS = ['get', 'list', 'watch', 'create', 'patch', 'update', 'delete']
const READ = ['get', 'list', 'watch']
const WRITE = ['get', 'create', 'patch', 'delete']

/** Events about an object, for `kubectl describe`. */
const EVENTS: Grant = { type: Event, verbs: ['get', 'create', 'patch'] }
/** Rights besides those of controllers on their kinds. */
const PROCESS: readonly Grant[] = [
  // Namespaces of accounts and their quotas, the platform's own namespace, and the catalog that it starts with.
  { type: Namespace, verbs: ['get', 'create'] },
  { type: ResourceQuota, verbs: ['get', 'create'] },
  ...CATALOG_KINDS.map((type) => ({ type, verbs: ['get', 'create', 'patch'] })),
  // What costs, and how much.
  ...BILLING_KINDS.map((type) => ({ type, verbs: READ })),
]

/** In the platform's own namespace: its lease, and the Secrets of the catalog and of power controls. */
const SYSTEM: readonly Grant[] = [
  { type: Lease, verbs: ['get', 'create', 'update'] },
  { type: Secret, verbs: ['get', 'create'] },
  EVENTS,
]

/** The rules for a process with these registrations, by scope: the whole cluster, each namespace of an account or a
 *  node, and the platform's own namespace. */
export function controllerRights(registrations: readonly Registration<never>[]) {
  const grants = [...PROCESS, ...registrations.flatMap(grantsOf)]
  const isBounded = ({ type }: Grant) => type === Secret || type === ResourceQuota
  return {
    everywhere: rulesOf(grants.filter((grant) => !isBounded(grant))),
    inNamespaces: rulesOf([...grants.filter(isBounded), EVENTS]),
    inSystem: rulesOf(SYSTEM),
  }
}

function rulesOf(grants: readonly Grant[]): readonly AccessRule[] {
  const verbsOf = new Map<string, { readonly group: string; readonly resource: string; readonly verbs: Set<string> }>()
  for (const { type, subresource, verbs } of grants) {
    const resource = subresource === undefined ? type.plural : `${type.plural}/${subresource}`
    const key = `${type.group}/${resource}`
    const granted = verbsOf.get(key) ?? { group: type.group, resource, verbs: new Set() }
    verbsOf.set(key, granted)
    for (const verb of verbs) granted.verbs.add(verb)
  }
  const alike = Map.groupBy(verbsOf.values(), ({ group, verbs }) => `${group} ${inOrder(verbs).join(' ')}`)
  return [...alike.values()].map((granted) => ({
    apiGroups: [granted[0]?.group ?? ''],
    resources: granted.map(({ resource }) => resource).toSorted(),
    verbs: inOrder(granted[0]?.verbs ?? new Set()),
  }))
}

const inOrder = (verbs: ReadonlySet<string>): readonly string[] => VERBS.filter((verb) => verbs.has(verb))

/** The loop reads the roots, adds finalizers to them and writes their status. */
const grantsOf = ({ resource, reads, writes, patches = [], operationKinds }: Registration<never>): readonly Grant[] => [
  { type: resource, verbs: [...READ, 'patch'] },
  { type: resource, subresource: 'status', verbs: ['patch'] },
  ...reads.map((type) => ({ type, verbs: READ })),
  // A Secret is never cached: each is read by its name.
  ...writes.map((type) => ({ type, verbs: type === Secret ? WRITE : [...READ, ...WRITE] })),
  ...patches.map((type) => ({ type, verbs: [...READ, 'patch'] })),
  ...(operationKinds.length === 0
    ? []
    : [
        { type: Operation, verbs: [...READ, 'create'] },
        { type: Operation, subresource: 'status' as const, verbs: ['patch'] },
      ]),
]
