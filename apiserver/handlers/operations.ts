/** Operations: from their object while there is one, from the history afterwards, from the target's stanza before. */
import { type FinishedOperation, stepsOf } from '../../domain/operations.ts'
import { notFound } from '../../domain/problem.ts'
import { findOperation } from '../../db/operation-history.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { accountNamespace } from '../../resources/index.ts'
import { getOperation, Operation, type OperationSpec, type OperationState, type OperationView, toOperationView } from '../../resources/operation.ts'
import { activeOperationOf } from '../../resources/server-routes.ts'
import type { OperationProgress } from '../../resources/shapes.ts'
import type { Parts } from '../parts.ts'
import { OPERATION_INDEX, type Servers } from '../servers.ts'
import { storedOf } from '../stored.ts'

export const operationEndpoints = ({ store, db }: Pick<Parts, 'store' | 'db'>, servers: Servers): readonly Endpoint[] => [
  customerEndpoint(getOperation, async ({ caller, params }) => {
    const namespace = accountNamespace(caller.accountId)
    const object = await store.get(Operation, { namespace, name: params.id })
    if (object !== undefined) return { status: 200, body: { operation: ofObject(object) } }
    const finished = UUID.test(params.id) ? await findOperation(db, caller.accountId, params.id) : undefined
    if (finished !== undefined) return { status: 200, body: { operation: ofHistory(finished) } }
    const [server] = servers.cache.by(OPERATION_INDEX, params.id).filter((candidate) => candidate.metadata.namespace === namespace)
    const active = server && activeOperationOf(storedOf(server))
    if (server === undefined || active === undefined) throw notFound('operation')
    return { status: 200, body: { operation: { ...toOperationView(active, { type: 'server', id: server.metadata.name }), events: [] } } }
  }),
]

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

interface StoredEvent {
  readonly at: string
  readonly kind: string
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>> | undefined
}
const eventsOf = (events: readonly StoredEvent[]) => events.map(({ at, kind, message, data }) => ({ at, kind, message, data: { ...data } }))

function ofObject({ metadata, spec, status }: KubeObject<OperationSpec, OperationState>): OperationView {
  const progress: OperationProgress = {
    id: metadata.name, kind: spec.kind, status: status?.status ?? 'pending', step: status?.step ?? stepsOf(spec.kind)[0] ?? '', stepIndex: status?.stepIndex ?? 0,
    stepCount: spec.stepCount, error: status?.error ?? '', actor: spec.actor, createdAt: spec.createdAt, deadlineAt: spec.deadlineAt,
    startedAt: status?.startedAt, finishedAt: status?.finishedAt,
  }
  return { ...toOperationView(progress, spec.target), events: eventsOf(status?.events ?? []) }
}

function ofHistory(finished: FinishedOperation): OperationView {
  const { startedAt, finishedAt, ...rest } = finished
  const progress: OperationProgress = { ...rest, startedAt: startedAt ?? undefined, finishedAt }
  return { ...toOperationView(progress, finished.target as OperationSpec['target']), events: eventsOf(finished.events) } // the reconciler recorded a target of these
}
