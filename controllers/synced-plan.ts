/** What the plans of networks and routers share, and in part those of floating IPs: one kind of operation that brings
 *  what is claimed and the rows of OVN to what the spec says, and steps that are the same. */
import type { KubernetesRequest } from '../db/request/index.ts'
import type { KubeObject, ResourceType } from '../kit/kube/object.ts'
import { isBeingDeleted, type Operable } from '../resources/operation/index.ts'
import type { Condition } from '../resources/shapes.ts'
import type { AuditAction } from './audit.ts'
import type { PlainAction } from './effects.ts'
import { auditRequests } from './operation/direct-edit.ts'
import { type During, type OperationPlan, planOperations } from './operation/plan.ts'
import { actionOf, auditedSync, failed, reconciling, removeFirst, type SyncDecision, syncActions } from './synced.ts'

/** What is installed nobody is woken for. */
const INSTALLED_LOOK_SECONDS = 1
const IN_USE_LOOK_SECONDS = 10

export interface SyncInput<Root, Observed> {
  readonly root: Root
  readonly observed: Observed
}

interface Edits {
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
}

type Decision<Status, Action> = SyncDecision<Status, Action>

/** A noun with one kind of operation, of which a deletion is one too. */
interface SyncedNoun<Root, Spec, Status, Observed, Action> {
  /** In errors, for people: `A router`. */
  readonly label: string
  /** As operations and the audit log name it. */
  readonly noun: 'network' | 'router'
  readonly type: ResourceType<Spec, Status>
  /** What an edit with kubectl does; undefined when the spec and the operations agree. */
  detectEdit(root: Root): string | undefined
  synchronize(input: During<SyncInput<Root, Observed>>): Decision<Status, Action>
  idle(input: SyncInput<Root, Observed>): Decision<Status, Action>
  remove(input: SyncInput<Root, Observed>): Decision<Status, Action>
  /** What its status says, whatever is decided. */
  knownOf(input: SyncInput<Root, Observed>): NonNullable<Decision<Status, Action>['status']>
}

/** The plan of such a noun. */
export const planSynced = <
  Root extends KubeObject<Spec, Status> & Operable,
  Spec,
  Status,
  Observed extends Edits,
  Action,
>(
  noun: SyncedNoun<Root, Spec, Status, Observed, Action>,
): OperationPlan<Root, Observed, Action | PlainAction | AuditAction> =>
  planOperations<
    Root,
    Observed,
    SyncInput<Root, Observed>,
    Decision<Status, Action | PlainAction | AuditAction>,
    Action | PlainAction | AuditAction
  >({
    label: noun.label,
    endedByDeletion: (operation) => actionOf(operation) === 'create',
    flows: {
      [`${noun.noun}.sync`]: (input: During<SyncInput<Root, Observed>>) =>
        isBeingDeleted(input.root) ? noun.remove(input) : noun.synchronize(input),
    },
    inputOf: (root, observed) => ({ root, observed }),
    unchanged: () => reconciling('Waiting'),
    always: ({ root, observed }) => auditRequests(root, observed.edits),
    guard: ({ root }) => removeFirst(noun.type, root),
    detectEdit({ root, observed }) {
      const action = noun.detectEdit(root)
      return action === undefined
        ? undefined
        : { kind: `${noun.noun}.sync`, field: '', arguments: { action }, actor: observed.editor }
    },
    idle: (input) => (isBeingDeleted(input.root) ? noun.remove(input) : noun.idle(input)),
    // A deletion goes on behind its operation.
    overdue: ({ root }, decision, error) =>
      isBeingDeleted(root) ? { ...decision, outcome: 'failed', error } : { ...decision, ...failed('applied', error) },
    auditedAs: auditedSync(noun.noun),
    toActions: (input, decision) =>
      syncActions(input.root, { ...decision, status: { ...noun.knownOf(input), ...decision.status } }),
  })

export interface OfAccount {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
}

export const hasAccount = ({ observed }: { readonly observed: OfAccount }) =>
  observed.accountId === undefined ? failed('claimed', 'The namespace belongs to no account.') : undefined

/** A zone that lost its private networks gets them back; one that never had any is refused. */
export function hasZone({
  root: { spec },
  observed: { hasNetworks, claim },
}: SyncInput<
  { readonly spec: { readonly zone: string } },
  { readonly hasNetworks: boolean; readonly claim: unknown }
>) {
  if (hasNetworks) return undefined
  return claim === undefined
    ? failed('claimed', `The zone ${spec.zone} has no private networks.`)
    : { ...reconciling('Waiting'), step: 'applied', waitFor: `zone ${spec.zone} to have private networks again` }
}

/** Its rows in OVN are as the facts say. */
export const applied = <Facts>({
  observed: { facts, isApplied },
}: {
  readonly observed: { readonly facts: Facts | undefined; readonly isApplied: boolean }
}) =>
  facts === undefined || isApplied
    ? undefined
    : {
        ...reconciling('Applying'),
        step: 'applied',
        actions: [{ do: 'effect', name: 'apply', input: { facts } } as const],
        waitFor: 'the network',
        waitSeconds: 0,
      }

/** Its hosts have installed what was written last; `hosts` names them, for people. */
export const installed =
  (hosts: string) =>
  ({
    root: { status },
    observed,
  }: SyncInput<
    { readonly status?: { readonly appliedSequence?: number | undefined } | undefined },
    { readonly installed: number | undefined }
  >) =>
    observed.installed === undefined || observed.installed >= (status?.appliedSequence ?? 0)
      ? undefined
      : {
          ...reconciling('Applying'),
          step: 'installed',
          waitFor: hosts,
          waitSeconds: INSTALLED_LOOK_SECONDS,
        }

interface Ending<Id> {
  /** Undefined when the namespace is no account's. */
  readonly id: Id | undefined
  readonly claim: { readonly isEnding: boolean } | undefined
  /** The condition that says why it may not go yet. */
  readonly ended: string
}

/** It goes once nothing is in it, or at it: the claim first, then its rows, then the rest. */
export function ending<Id>(
  root: KubeObject<{ readonly zone: string }, { readonly conditions?: readonly Condition[] | undefined }>,
  { id, claim, ended }: Ending<Id>,
) {
  if (id !== undefined && claim?.isEnding === false) {
    const refusal = root.status?.conditions?.find(({ type, status }) => type === ended && status === 'False')
    return {
      ...reconciling('Deleting'),
      step: 'applied',
      ...(refusal === undefined ? {} : { message: refusal.message }),
      actions: [{ do: 'effect', name: 'end', input: id } as const],
      waitFor: refusal?.message ?? 'the database',
      waitSeconds: refusal === undefined ? 0 : IN_USE_LOOK_SECONDS,
    }
  }
  return {
    ...reconciling('Deleting'),
    step: 'installed',
    outcome: 'succeeded' as const,
    actions: [{ do: 'effect', name: 'release', input: { zone: root.spec.zone, id } } as const],
    isGone: true,
  }
}
