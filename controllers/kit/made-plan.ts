/** What the plans of nouns share that one operation creates and another deletes, and that the controller maintains in
 *  between. */
import type { OperationKind } from '../../domain/operations.ts'
import type { KubernetesRequest } from '../../db/request/index.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import type { Operable } from '../../resources/operation/index.ts'
import type { OperationStanza } from '../../resources/kit/shapes.ts'
import type { AuditAction } from './audit.ts'
import type { PlainAction } from './effects.ts'
import { auditRequests, type OperationStart } from './operation/direct-edit.ts'
import { type During, type Flows, type OperationPlan, planOperations } from './operation/plan.ts'
import { hasNoRequest } from './operation/stanza.ts'
import { failed, reconciling, removeFirst, syncActions, type SyncDecision } from './synced.ts'

export interface MadeInput<Root, Observed> {
  readonly root: Root
  readonly observed: Observed
  readonly now: Date
}

interface Edits {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** The actor of the edit that has no operation. */
  readonly editor: string
}

interface MadeNoun<Root, Spec, Status, Observed, Action> {
  /** Used in errors, for people: `A database`. */
  readonly label: string
  readonly type: ResourceType<Spec, Status>
  readonly creates: OperationKind | ((root: Root) => OperationKind)
  readonly deletes: OperationKind
  /** All flows but its deletion. */
  readonly flows: Flows<MadeInput<Root, Observed>, SyncDecision<Status, Action>>
  /** Other edits that need an operation, and operations that a rule of the platform requires, with `actor` then. */
  detectMore?(input: MadeInput<Root, Observed>): (OperationStart & { readonly actor?: string }) | undefined
  /** As in `planOperations`, for operations that no request started. */
  readonly auditedAs?: (operation: OperationStanza) => string
  /** Decides once the object is created, while no operation is under way. */
  idle(input: MadeInput<Root, Observed>): SyncDecision<Status, Action>
  remove(input: MadeInput<Root, Observed>): SyncDecision<Status, Action>
  /** What its status shows when an operation has passed its deadline. */
  overdue?(input: During<MadeInput<Root, Observed>>, error: string): SyncDecision<Status, Action>['status']
}

/** It is deleted, or its deletion was requested. */
const isLeaving = ({ metadata, spec }: KubeObject & Operable, deletes: OperationKind): boolean =>
  metadata.deletionTimestamp !== undefined || spec.operation?.kind === deletes

/** The plan of such a noun. */
export const planMade = <
  Root extends KubeObject<Spec, Status> & Operable,
  Spec,
  Status,
  Observed extends Edits,
  Action,
>(
  noun: MadeNoun<Root, Spec, Status, Observed, Action>,
): OperationPlan<Root, Observed, Action | PlainAction | AuditAction> =>
  planOperations<
    Root,
    Observed,
    MadeInput<Root, Observed>,
    SyncDecision<Status, Action>,
    Action | PlainAction | AuditAction
  >({
    label: noun.label,
    endedByDeletion: 'all',
    flows: { ...noun.flows, [noun.deletes]: noun.remove },
    inputOf: (root, observed, now) => ({ root, observed, now }),
    unchanged: () => reconciling('Waiting'),
    always: ({ root, observed }) => auditRequests(root, observed.edits),
    guard: ({ root }) => removeFirst(noun.type, root, isLeaving(root, noun.deletes)),
    detectEdit(input) {
      const { root, observed } = input
      const kind = detectLife(root, noun)
      if (kind !== undefined) return { kind, field: '', actor: observed.editor }
      if (isLeaving(root, noun.deletes)) return undefined
      const more = noun.detectMore?.(input)
      return more && { field: '', ...more, actor: more.actor ?? observed.editor }
    },
    idle: (input) => (isLeaving(input.root, noun.deletes) ? noun.remove(input) : noun.idle(input)),
    // A deletion continues after its operation has failed.
    overdue: (input, decision, error) =>
      isLeaving(input.root, noun.deletes)
        ? { ...decision, outcome: 'failed', error }
        : { ...failed(decision.step ?? 'done', error), status: noun.overdue?.(input, error) ?? {} },
    ...(noun.auditedAs === undefined
      ? {}
      : { auditedAs: (operation) => (hasNoRequest(operation) ? noun.auditedAs?.(operation) : undefined) }),
    toActions: ({ root }, decision) => syncActions(root, decision),
  })

const NETWORK_LOOK_SECONDS = 5

/** The network in the same manifest may be created later. */
export const networkAwaited = (networkId: string) =>
  ({
    ...reconciling('Waiting'),
    step: 'claimed',
    message: `Waiting for network ${networkId} to be there`,
    waitFor: `network ${networkId} to be there`,
    waitSeconds: NETWORK_LOOK_SECONDS,
  }) as const

/** Nothing is done before the claim is granted. */
export const claiming = <Action>(action: Action) =>
  ({
    ...reconciling('Claiming'),
    step: 'claimed',
    actions: [action],
    waitFor: 'the database',
    waitSeconds: 0,
  }) as const

/** Its creation or its deletion, when it has no operation yet. */
export function detectLife<Root extends KubeObject & Operable>(
  root: Root,
  { creates, deletes }: Pick<MadeNoun<Root, unknown, unknown, unknown, unknown>, 'creates' | 'deletes'>,
): OperationKind | undefined {
  const {
    metadata,
    spec: { operation },
    status,
  } = root
  if (metadata.deletionTimestamp !== undefined) return operation?.kind === deletes ? undefined : deletes
  if (operation !== undefined || status?.operation !== undefined) return undefined
  return typeof creates === 'function' ? creates(root) : creates
}
