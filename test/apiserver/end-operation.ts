/** The end of an operation of a server, as its controller reports it. */
import type { Store } from '../../kit/kube/store.ts'
import { Operation } from '../../resources/operation/index.ts'
import { Server } from '../../resources/server/index.ts'

export interface End {
  readonly status: 'succeeded' | 'failed'
  readonly step: string
  readonly stepIndex: number
  readonly error: string
  readonly events?: readonly { readonly at: string; readonly kind: string; readonly message: string }[]
}

/** The server says so, and then the operation. Throws when there is no such operation. */
export async function endServerOperation(store: Store, key: { namespace: string; name: string }, end: End) {
  const operation = await store.get(Operation, key)
  if (operation === undefined) throw new Error(`there is no operation ${key.name}`)
  const { events: _events, ...progress } = end
  const { target, kind, actor, createdAt, deadlineAt, stepCount } = operation.spec
  const shown = { id: key.name, kind, actor, createdAt, deadlineAt, stepCount, ...progress, finishedAt: createdAt }
  const status = { state: end.status === 'failed' ? 'error' : 'started', operation: shown }
  await store.patch(Server, { ...key, name: target.id }, { status }, 'status')
  await store.patch(Operation, key, { status: end }, 'status')
}
