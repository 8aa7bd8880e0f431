/** Namespaces of new accounts. The request that opens an account tries to create its namespace. When Kubernetes did not
 *  answer or the process died, the namespace is created here. */
import { listWithoutNamespace, noteAccountNamespace } from '../../../db/account/index.ts'
import { makeNamespace } from '../../../kit/kube/namespaces.ts'
import { accountNamespaceOf } from '../../../resources/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import { Outages } from '../../../kit/sys/outages.ts'

type NamespaceParts = Pick<Parts, 'db' | 'store' | 'clock' | 'log'>

const ROUND_MILLISECONDS = 15_000
const ROUND_ACCOUNTS = 1_000

/** Creates missing namespaces until the signal aborts. Never throws. */
export async function runAccountNamespaces(parts: NamespaceParts, signal: AbortSignal): Promise<void> {
  const outages = new Outages(parts, 'namespaces of accounts not made')
  while (!signal.aborted) {
    await outages.attempt(() => makeAccountNamespaces(parts))
    await parts.clock.sleep(ROUND_MILLISECONDS, signal)
  }
}

/** One round. A namespace that cannot be created does not block the others; its failure is thrown at the end. Throws
 *  Unavailable when the database does not answer. */
export async function makeAccountNamespaces({ db, store, clock, log }: NamespaceParts): Promise<void> {
  let failure: unknown
  for (const accountId of await orUnavailable(listWithoutNamespace(db, ROUND_ACCOUNTS))) {
    try {
      await makeNamespace(store, accountNamespaceOf(accountId))
    } catch (error) {
      log.info('namespace of an account not made', { account_id: accountId, error })
      failure = error
      continue
    }
    await orUnavailable(noteAccountNamespace(db, accountId, clock.now()))
  }
  if (failure !== undefined) throw failure
}
