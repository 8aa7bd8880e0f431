/** The namespace of an account, which holds its resources. */
import { isUuid } from '../../domain/uuid.ts'
import { ACCOUNT_LABEL } from './labels.ts'

const PREFIX = 'acct-'

export const accountNamespace = (accountId: string): string => `${PREFIX}${accountId}`

/** The account of a namespace; undefined when it is not an account's. An administrator of the cluster may create any
 *  name: an account is only what PostgreSQL can be asked for. */
export function accountOfNamespace(namespace: string): string | undefined {
  const id = namespace.startsWith(PREFIX) ? namespace.slice(PREFIX.length) : ''
  return isUuid(id) ? id : undefined
}

/** The namespace with its contents, as `makeNamespace` (`kit/kube/namespaces.ts`) creates it. */
export const accountNamespaceOf = (accountId: string) => ({
  name: accountNamespace(accountId),
  labels: { [ACCOUNT_LABEL]: accountId },
  bounds: BOUNDS,
})

/** Limit of plain objects, which the platform does not count, and which every user of the namespace can create with
 *  kubectl. The namespace also contains a few Secrets for each server. */
const BOUNDS: Readonly<Record<string, string>> = {
  'count/secrets': '10000',
  'count/configmaps': '1000',
  'count/events': '20000',
  'count/serviceaccounts': '100',
  'count/services': '100',
  'count/endpoints': '100',
  'count/pods': '100',
  'count/persistentvolumeclaims': '100',
  'count/deployments.apps': '100',
  'count/replicasets.apps': '100',
  'count/statefulsets.apps': '100',
  'count/daemonsets.apps': '100',
  'count/jobs.batch': '100',
  'count/cronjobs.batch': '100',
  'count/horizontalpodautoscalers.autoscaling': '100',
  'count/ingresses.networking.k8s.io': '100',
  'count/networkpolicies.networking.k8s.io': '100',
  'count/poddisruptionbudgets.policy': '100',
  'count/leases.coordination.k8s.io': '100',
  'count/roles.rbac.authorization.k8s.io': '200',
  'count/rolebindings.rbac.authorization.k8s.io': '200',
}
