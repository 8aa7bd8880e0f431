/** The ClusterRoles that operators bind in the namespaces of accounts. */
import type { ResourceType } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import { ACCOUNT_ROLES } from '../../resources/account-roles.ts'

const ClusterRole: ResourceType<undefined, undefined> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  scope: 'Cluster',
}

/** Safe to repeat: existing roles are updated. */
export async function installRoles(store: Store): Promise<void> {
  for (const { metadata, rules } of ACCOUNT_ROLES) {
    const role = { metadata, spec: undefined, rules }
    await store.apply(ClusterRole, role)
  }
}
