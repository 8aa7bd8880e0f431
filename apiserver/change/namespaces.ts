/** The namespace of an account, which holds its resources. */
import { Namespace } from '../../kit/kube/object.ts'
import { isAlreadyExists } from '../../kit/kube/store.ts'
import { accountNamespace } from '../../resources/index.ts'
import { ACCOUNT_LABEL } from '../../resources/labels.ts'
import type { Parts } from '../parts.ts'

/** Makes it when it is not there. */
export async function ensureNamespace(
  { store, caches }: Pick<Parts, 'store' | 'caches'>,
  accountId: string,
): Promise<void> {
  const name = accountNamespace(accountId)
  if (caches.of(Namespace).get({ name }) !== undefined) return
  const draft = { metadata: { name, labels: { [ACCOUNT_LABEL]: accountId } }, spec: {} }
  await store.create(Namespace, draft).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
}
