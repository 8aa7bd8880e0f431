/** Operations as the API shows them: from their object, or from the history. */
import { type FinishedOperation, stepsOf } from '../../../domain/operations.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { emailsOf } from '../../../db/account/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import type { ListPlace } from '../../../db/kit/page.ts'
import type { OperationFilter } from '../../../db/operation/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import {
  type OperationSpec,
  type OperationState,
  type OperationView,
  recordedTarget,
  toOperationView,
} from '../../../resources/operation/index.ts'
import { progressOfMove } from '../../../resources/server/index.ts'
import type { OperationProgress } from '../../../resources/kit/shapes.ts'
import type { ServerObject } from '../server/index.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'

export type OperationObject = KubeObject<OperationSpec, OperationState>

/** The position of an operation in lists. */
export const operationPlace = (view: Pick<OperationView, 'created_at' | 'id'>): ListPlace => ({
  createdAt: new Date(view.created_at),
  id: view.id,
})

interface OperationQuery {
  readonly kind?: readonly string[] | undefined
  readonly status?: readonly string[] | undefined
  readonly resource?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

const instant = (text: string | undefined): Date | undefined => (text === undefined ? undefined : new Date(text))

/** Which time a query asks for, for rows and for objects. */
export const periodOf = ({ from, to }: OperationQuery): Pick<OperationFilter, 'from' | 'before'> => ({
  from: instant(from),
  before: instant(to),
})

/** The resource whose operations a query asks for: its type and its id. */
export function targetOf({ resource = '' }: OperationQuery): OperationFilter['target'] {
  const [type, ...rest] = resource.split(':')
  return type === undefined || rest.length === 0 ? undefined : { type, id: rest.join(':') }
}

/** Whether a query asks for an operation, by what no index finds; undefined when it asks for all. */
export const matchesOf = ({ kind, status }: OperationQuery) =>
  kind === undefined && status === undefined
    ? undefined
    : (view: Pick<OperationView, 'kind' | 'status'>): boolean =>
        (kind?.includes(view.kind) ?? true) && (status?.includes(view.status) ?? true)

/** Whether the operation matches the filter, as its row does once it has ended. */
export function isListed({ metadata, spec }: OperationObject, filter: OperationFilter): boolean {
  const { ids, target, from, before } = filter
  const createdAt = new Date(spec.createdAt)
  return (
    (ids?.includes(metadata.name) ?? true) &&
    (target === undefined || (spec.target.type === target.type && spec.target.id === target.id)) &&
    (from === undefined || createdAt >= from) &&
    (before === undefined || createdAt < before)
  )
}

/** Negative when `one` comes first. */
const compareNewestFirst = (one: ListPlace, other: ListPlace): number =>
  other.createdAt.getTime() - one.createdAt.getTime() || (one.id === other.id ? 0 : one.id > other.id ? -1 : 1)

/** The operations after the position, newest first and without events. Objects and history hold the same operation for
 *  a while; it is listed once. */
export function listedViews(
  finished: readonly FinishedOperation[],
  objects: readonly OperationObject[],
  after: ListPlace | undefined,
): Omit<OperationView, 'events'>[] {
  const views = new Map(
    [...finished.map(ofHistory), ...objects.map(ofObject)].map(({ events: _events, ...view }) => [view.id, view]),
  )
  return [...views.values()]
    .filter((view) => after === undefined || compareNewestFirst(after, operationPlace(view)) < 0)
    .sort((one, other) => compareNewestFirst(operationPlace(one), operationPlace(other)))
}

interface StoredEvent {
  readonly at: string
  readonly kind: string
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>> | undefined
}
const eventsOf = (events: readonly StoredEvent[]) =>
  events.map(({ at, kind, message, data }) => ({ at, kind, message, data: { ...data } }))

/** The view of an operation that Kubernetes still has; before its first status it is pending. */
export function ofObject({ metadata, spec, status }: OperationObject): OperationView {
  const progress: OperationProgress = {
    id: metadata.name,
    kind: spec.kind,
    status: status?.status ?? 'pending',
    step: status?.step ?? stepsOf(spec.kind)[0] ?? '',
    stepIndex: status?.stepIndex ?? 0,
    stepCount: spec.stepCount,
    error: status?.error ?? '',
    actor: spec.actor,
    createdAt: spec.createdAt,
    deadlineAt: spec.deadlineAt,
    startedAt: status?.startedAt,
    finishedAt: status?.finishedAt,
  }
  return {
    ...toOperationView(progress, recordedTarget(spec.target), spec.carrier),
    events: eventsOf(status?.events ?? []),
  }
}

/** With the progress of the guest, while a server.migrate is under way. */
export function withProgress(view: OperationView, server: ServerObject | undefined): OperationView {
  const progress =
    server === undefined || view.kind !== 'server.migrate' || view.status !== 'running'
      ? undefined
      : progressOfMove(storedOf(server), view.id)
  return progress === undefined ? view : { ...view, progress }
}

/** The view of an operation that only the history has. */
export function ofHistory(finished: FinishedOperation): OperationView {
  const { startedAt, finishedAt, ...rest } = finished
  const progress: OperationProgress = { ...rest, startedAt: startedAt ?? undefined, finishedAt }
  // the reconciler recorded these
  const [target, carrier] = [finished.target, finished.carrier] as [OperationSpec['target'], OperationSpec['carrier']]
  return { ...toOperationView(progress, recordedTarget(target), carrier), events: eventsOf(finished.events) }
}

const USER = 'user:'
const TOKEN = 'token:'

/** The views with the names of their actors. Whoever acted in an account was a member of it then. */
export async function withActorNames<View extends Pick<OperationView, 'actor'>>(
  db: Queries,
  views: readonly View[],
): Promise<readonly (View & { readonly actor_name: string | null })[]> {
  const idOf = ({ actor }: View): string => (actor.startsWith(USER) ? actor.slice(USER.length) : '')
  const emails = await emailsOf(db, [...new Set(views.map(idOf).filter(isUuid))])
  return views.map((view) => {
    const { actor } = view
    const token = actor.startsWith(TOKEN) ? actor.slice(TOKEN.length) : null
    return { ...view, actor_name: token ?? emails.get(idOf(view)) ?? null }
  })
}
