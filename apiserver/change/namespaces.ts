/** The namespace of an account, which holds its resources. */
import { Namespace, ResourceQuota } from '../../kit/kube/object.ts'
import { isAlreadyExists, type Store } from '../../kit/kube/store.ts'
import { accountNamespace } from '../../resources/index.ts'
import { ACCOUNT_LABEL } from '../../resources/labels.ts'
import type { Parts } from '../parts.ts'

const BOUNDS_NAME = 'svccloud'
/** Of plain objects, which the platform does not count, and which whoever may use the namespace makes by kubectl. It
 *  keeps a few Secrets for each server itself. */
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

/** Namespaces that have their bounds, as this process knows. */
const bounded = new WeakMap<Store, Set<string>>()

/** Makes it when it is not there, with bounds for what is made in it past the platform. */
export async function ensureNamespace(
  { store, caches }: Pick<Parts, 'store' | 'caches'>,
  accountId: string,
): Promise<void> {
  const name = accountNamespace(accountId)
  if (caches.of(Namespace).get({ name }) === undefined) {
    const draft = { metadata: { name, labels: { [ACCOUNT_LABEL]: accountId } }, spec: {} }
    await free(store.create(Namespace, draft))
  }
  const known = bounded.get(store) ?? new Set()
  bounded.set(store, known)
  if (known.has(name)) return
  await free(store.create(ResourceQuota, { metadata: { namespace: name, name: BOUNDS_NAME }, spec: { hard: BOUNDS } }))
  known.add(name)
}

const free = (making: Promise<unknown>): Promise<void> =>
  making.then(
    () => {},
    (error: unknown) => {
      if (!isAlreadyExists(error)) throw error
    },
  )
