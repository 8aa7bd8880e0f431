/** The agent of the organisation platform in a cluster: objects of a few kinds with a label, by which outdated objects
 *  are found and removed. */
import type { AgentObject } from '../../integrations/control-planes/control.ts'
import { apply, type KubeApi, send } from './kube-api.ts'
import { Refused } from './refused.ts'

const LABEL = 'svccloud.dev/platform-agent'
const NOT_FOUND = 404

interface Kind {
  readonly apiVersion: string
  readonly kind: string
  readonly plural: string
  readonly isNamespaced: boolean
}
const RBAC = 'rbac.authorization.k8s.io/v1'
const kind = (apiVersion: string, name: string, plural: string, isNamespaced = true): Kind => ({
  apiVersion,
  kind: name,
  plural,
  isNamespaced,
})
/** In the order of their creation. */
const KINDS: readonly Kind[] = [
  kind('v1', 'Namespace', 'namespaces', false),
  kind('v1', 'ServiceAccount', 'serviceaccounts'),
  kind(RBAC, 'ClusterRole', 'clusterroles', false),
  kind(RBAC, 'ClusterRoleBinding', 'clusterrolebindings', false),
  kind(RBAC, 'Role', 'roles'),
  kind(RBAC, 'RoleBinding', 'rolebindings'),
  kind('v1', 'ConfigMap', 'configmaps'),
  kind('v1', 'Secret', 'secrets'),
  kind('v1', 'Service', 'services'),
  kind('apps/v1', 'DaemonSet', 'daemonsets'),
  kind('apps/v1', 'Deployment', 'deployments'),
]

const pathOf = ({ apiVersion, plural, isNamespaced }: Kind, namespace: string | undefined): string => {
  const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
  return isNamespaced && namespace !== undefined ? `${root}/namespaces/${namespace}/${plural}` : `${root}/${plural}`
}

function kindOf({ apiVersion, kind: name, metadata }: AgentObject): Kind {
  const found = KINDS.find((each) => each.apiVersion === apiVersion && each.kind === name)
  if (found === undefined) throw new Refused('state_not_allowed', `An agent has no ${apiVersion} ${name}.`)
  if (found.isNamespaced !== (metadata.namespace !== undefined))
    throw new Refused(
      'state_not_allowed',
      `${name} ${metadata.name} ${found.isNamespaced ? 'needs a namespace' : 'has no namespace'}.`,
    )
  return found
}

/** Makes the agent consist of exactly these objects. May be repeated. Throws Refused before it changes anything. */
export async function setAgent(api: KubeApi, objects: readonly AgentObject[]): Promise<void> {
  const wanted = objects.map((object) => ({ object, kind: kindOf(object) }))
  const paths = new Set<string>()
  for (const each of KINDS)
    for (const { object } of wanted.filter((one) => one.kind === each)) {
      const { name, namespace, labels } = object.metadata
      const path = pathOf(each, namespace)
      paths.add(`${path}/${name}`)
      await apply(api, path, {
        ...object,
        metadata: { ...object.metadata, name, labels: { ...labels, [LABEL]: 'true' } },
      })
    }
  for (const each of KINDS.toReversed())
    for (const path of await labelled(api, each))
      if (!paths.has(path)) await send(api, 'DELETE', `${path}?propagationPolicy=Background`, { accepted: [NOT_FOUND] })
}

async function labelled(api: KubeApi, each: Kind): Promise<readonly string[]> {
  const { text } = await send(api, 'GET', `${pathOf(each, undefined)}?labelSelector=${LABEL}%3Dtrue`)
  // The API of Kubernetes returns lists in this shape.
  const { items } = JSON.parse(text) as { readonly items: readonly Pick<AgentObject, 'metadata'>[] }
  return items.map(({ metadata: { name, namespace } }) => `${pathOf(each, namespace)}/${name}`)
}
