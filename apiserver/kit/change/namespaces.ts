/** The namespace of an account: created with the account, and before the first object in it at the latest. */
import { noteAccountNamespace } from '../../../db/account/index.ts'
import { makeNamespace } from '../../../kit/kube/namespaces.ts'
import { Namespace } from '../../../kit/kube/object.ts'
import type { Store } from '../../../kit/kube/store.ts'
import { isDryRun } from '../../../kit/sys/dry-run.ts'
import { accountNamespace, accountNamespaceOf } from '../../../resources/index.ts'
import type { Parts } from '../parts.ts'

/** How long a request that opens an account waits for its namespace. */
const OPENING_MILLISECONDS = 2_000

/** Namespaces that are complete, as far as this process knows. */
const whole = new WeakMap<Store, Set<string>>()

/** Creates it with everything that belongs to it, unless this process knows that it is complete. Throws what the store
 *  throws. */
export async function ensureNamespace(
  { store, caches }: Pick<Parts, 'store' | 'caches'>,
  accountId: string,
): Promise<void> {
  const name = accountNamespace(accountId)
  const known = whole.get(store) ?? new Set()
  whole.set(store, known)
  if (known.has(name) && caches.of(Namespace).get({ name }) !== undefined) return
  await makeNamespace(store, accountNamespaceOf(accountId))
  if (!isDryRun()) known.add(name)
}

/** Creates the namespace of an account that has just been opened; never inside its transaction. It waits only a moment
 *  and never throws: while Kubernetes does not answer, controllers create it later
 *  (`controllers/nouns/account/index.ts`). */
export async function openNamespace(
  { db, store, clock, log }: Pick<Parts, 'db' | 'store' | 'clock' | 'log'>,
  accountId: string,
): Promise<void> {
  const making = makeNamespace(store, accountNamespaceOf(accountId))
    .then(() => noteAccountNamespace(db, accountId, clock.now()))
    .catch((error: unknown) => log.info('namespace of a new account not made yet', { account_id: accountId, error }))
  await new Promise<void>((resolve) => {
    const stop = clock.after(OPENING_MILLISECONDS, resolve)
    void making.then(() => {
      stop()
      resolve()
    })
  })
}
