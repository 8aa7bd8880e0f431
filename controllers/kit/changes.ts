/** Changes as controllers find them: the spec differs from what the status or the claims show. The noun's changes
 *  define which change that is, what it claims and how it is undone; the plan of the noun defines what follows. */
import { actionOf, auditActionOf, type Changeable, conditionOf } from '../../changes/kit/define.ts'
import { changesBetween } from '../../changes/kit/judge.ts'
import type { ChangeIntent } from '../../db/change/index.ts'
import type { KubernetesRequest } from '../../db/request/index.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { accountNamespace } from '../../resources/index.ts'
import type { AuditAction } from './audit.ts'
import type { IntentHandler } from './controller.ts'
import { orUnavailable } from './outage.ts'
import type { EffectOn, PlainAction } from './effects.ts'
import { requireNewest } from './newest.ts'
import { auditRequests, findEditor, type OperationStart, requesterOf } from './operation/direct-edit.ts'
import { wasOperationApplied } from './operation/intent.ts'
import { type During, type OperationPlan, planOperations } from './operation/plan.ts'
import { operationActionOf } from './operation/stanza.ts'
import type { Parts } from './parts.ts'
import { grantedCondition, refusalOf, withRefusalCondition } from './refusal.ts'
import { requireStandingOfEdit } from './standing.ts'
import type { OfAccount, SyncInput } from './synced-plan.ts'
import {
  auditedSync,
  editsOf,
  failed,
  newRequests,
  reconciling,
  removeFirst,
  type SyncDecision,
  syncActions,
} from './synced.ts'
import {
  type AnyChange,
  detectChange,
  everyChange,
  isBeingRemoved,
  type OperatedSpec,
  type OperatedStatus,
  type Root,
  startOf,
} from './detect-change.ts'

/** Claims what the change of that name needs. */
export interface ClaimEffects {
  readonly claim: { readonly accountId: string; readonly change: string }
}

/** The authors of edits that no REST request made. */
export interface Edits {
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** The actor of the edit that has no operation; empty when there is none. */
  readonly editor: string
}

/** The edits by kubectl since the object was last observed. Throws Unavailable. */
export async function readEdits<Spec extends OperatedSpec, Status extends OperatedStatus, Facts>(
  { db, store }: Pick<Parts, 'db' | 'store'>,
  noun: Changeable<Spec, Status, Facts>,
  root: Root<Spec, Status>,
  applied: Spec | undefined,
): Promise<Edits> {
  const requests = await newRequests(db, root)
  const change = detectChange(noun, root, applied)
  return {
    edits: editsOf(requests),
    editor:
      change === undefined
        ? ''
        : (requesterOf(requests, change.operation) ?? (await findEditor(store, noun.resource, root, ''))),
  }
}

/** Releases what an unfinished change claimed. */
export const intentOf = <Spec extends OperatedSpec, Status extends OperatedStatus, Facts>(
  noun: Changeable<Spec, Status, Facts>,
): IntentHandler<KubeObject<Spec, Status> | undefined> => ({
  resourceType: noun.target,
  async wasApplied(parts, intent) {
    if (noun.remove.operation !== undefined || intent.audit.action !== auditActionOf(noun, noun.remove))
      return wasOperationApplied(noun.resource)(parts, intent)
    const stored = await look(noun, parts, intent)
    return stored === undefined || stored.metadata.deletionTimestamp !== undefined
  },
  look: (parts, intent) => look(noun, parts, intent),
  async release(tx, { accountId, operationId, resource: { id }, audit: { action, changes } }, stored) {
    for (const change of everyChange(noun))
      if (auditActionOf(noun, change) === action)
        await change.release?.(tx, { accountId, id, changeId: operationId, changes }, stored)
  },
})

const look = <Spec, Status, Facts>(
  { resource: type }: Changeable<Spec, Status, Facts>,
  { store }: Pick<Parts, 'store'>,
  { accountId, resource }: ChangeIntent,
): Promise<KubeObject<Spec, Status> | undefined> =>
  store.get(type, { namespace: accountNamespace(accountId), name: resource.id })

/** The effect `claim`: a refusal by PostgreSQL becomes the condition of the change. */
export const claimEffect =
  <Spec extends OperatedSpec, Status extends OperatedStatus, Facts>(
    parts: Parts,
    noun: Changeable<Spec, Status, Facts>,
  ): EffectOn<ClaimEffects['claim'], Spec, Status> =>
  (input, root) => {
    const change = everyChange(noun).find(({ name }) => name === input.change)
    if (change === undefined) throw new Error(`a ${noun.title} has no change ${input.change}`)
    const condition = conditionOf(change)
    const claim: EffectOn<ClaimEffects['claim'], Spec, Status> = async ({ accountId }) => {
      // A claim for an object that is deleted meanwhile would never be released.
      if (change.name !== noun.remove.name) await requireNewest(parts.store, noun.resource, root)
      if (change.needs === 'standing') await requireStandingOfEdit(parts, root, accountId)
      const { name: id, uid } = root.metadata
      const subject = { accountId, id, uid, spec: root.spec, facts: undefined }
      const means = { ...parts, changeId: root.spec.operation?.id ?? '' }
      await orUnavailable(parts.db.transaction().execute(async (tx) => change.claim?.(tx, subject, means)))
      return grantedCondition(condition)
    }
    return withRefusalCondition(condition, claim)(input, root)
  }

/** The rule of a plan that everything is claimed. `claimedOf` answers the spec as claimed; undefined before. A refusal
 *  ends the operation of the change; a change without an operation is left as it was. */
export const claimed =
  <Spec extends OperatedSpec, Status extends OperatedStatus, Facts, Observed extends OfAccount>(
    noun: Changeable<Spec, Status, Facts>,
    claimedOf: (input: SyncInput<KubeObject<Spec, Status>, Observed>) => Spec | undefined,
  ) =>
  (input: SyncInput<KubeObject<Spec, Status>, Observed>) => {
    const { root, observed } = input
    const before = claimedOf(input)
    const due: readonly AnyChange<Spec>[] =
      before === undefined ? [noun.create] : changesBetween(noun, before, root.spec)
    for (const change of due) {
      if (change.claim === undefined) continue
      const refusal = refusalOf(root, conditionOf(change))
      if (refusal === undefined) return claiming(observed, change.name)
      if (change.operation !== undefined) return failed('claimed', refusal.message)
    }
    return undefined
  }

const claiming = ({ accountId = '' }: OfAccount, change: string) => ({
  ...reconciling('Claiming'),
  step: 'claimed' as const,
  actions: [{ do: 'effect', name: 'claim', input: { accountId, change } } as const],
  waitFor: 'the database',
  waitSeconds: 0,
})

const IN_USE_LOOK_SECONDS = 10

/** The rule of a removal whose claim is not granted yet: the message names what still uses the object. */
export function removalClaimed<Spec extends OperatedSpec, Status extends OperatedStatus, Facts>(
  noun: Changeable<Spec, Status, Facts>,
  root: KubeObject<Spec, Status>,
  { accountId, isGranted }: OfAccount & { readonly isGranted: boolean },
) {
  if (isGranted || accountId === undefined) return undefined
  const type = conditionOf(noun.remove)
  const refusal = root.status?.conditions?.find((each) => each.type === type && each.status === 'False')
  return {
    ...claiming({ accountId }, noun.remove.name),
    ...reconciling('Deleting'),
    step: 'applied' as const,
    ...(refusal === undefined
      ? {}
      : { message: refusal.message, waitFor: refusal.message, waitSeconds: IN_USE_LOOK_SECONDS }),
  }
}

type Decision<Status, Action> = SyncDecision<Status, Action>

/** What a noun defines besides its changes. */
interface ChangedNoun<Root, Spec, Status, Observed, Action> {
  /** The spec that the newest operation applied, as the status shows it; undefined before the object was created. */
  applied(root: Root): Spec | undefined
  /** The operation that a rule of the platform requires now. */
  due?(input: SyncInput<Root, Observed>): (OperationStart & { readonly actor: string }) | undefined
  synchronize(input: During<SyncInput<Root, Observed>>): Decision<Status, Action>
  idle(input: SyncInput<Root, Observed>): Decision<Status, Action>
  remove(input: SyncInput<Root, Observed>): Decision<Status, Action>
  /** What its status shows, whatever the decision. */
  knownOf(input: SyncInput<Root, Observed>): NonNullable<Decision<Status, Action>['status']>
}

/** The plan of a noun whose changes all have one kind of operation. */
export const planChanges = <
  Spec extends OperatedSpec,
  Status extends OperatedStatus,
  Facts,
  Observed extends Edits,
  Action,
>(
  noun: Changeable<Spec, Status, Facts>,
  {
    applied,
    due,
    synchronize,
    idle,
    remove,
    knownOf,
  }: ChangedNoun<KubeObject<Spec, Status>, Spec, Status, Observed, Action>,
): OperationPlan<KubeObject<Spec, Status>, Observed, Action | PlainAction | AuditAction> => {
  const flow = (input: During<SyncInput<KubeObject<Spec, Status>, Observed>>) =>
    isBeingRemoved(noun, input.root) ? remove(input) : synchronize(input)
  return planOperations<
    KubeObject<Spec, Status>,
    Observed,
    SyncInput<KubeObject<Spec, Status>, Observed>,
    Decision<Status, Action | PlainAction | AuditAction>,
    Action | PlainAction | AuditAction
  >({
    label: `A ${noun.title}`,
    endedByDeletion: (operation) => operationActionOf(operation) === actionOf(noun.create),
    flows: Object.fromEntries(
      everyChange(noun).flatMap(({ operation }) => (operation === undefined ? [] : [[operation, flow]])),
    ),
    inputOf: (root, observed) => ({ root, observed }),
    unchanged: () => reconciling('Waiting'),
    always: ({ root, observed }) => auditRequests(root, observed.edits),
    guard: ({ root }) => removeFirst(noun.resource, root, isBeingRemoved(noun, root)),
    detectEdit(input) {
      const { root, observed } = input
      const start = due?.(input)
      if (start !== undefined) return { field: '', ...start }
      const change = detectChange(noun, root, applied(root))
      return change && { ...startOf(noun, root, change), field: '', actor: observed.editor }
    },
    idle: (input) => (isBeingRemoved(noun, input.root) ? remove(input) : idle(input)),
    // A removal continues after its operation has failed.
    overdue: ({ root }, decision, error) =>
      isBeingRemoved(noun, root)
        ? { ...decision, outcome: 'failed', error }
        : { ...decision, ...failed('applied', error) },
    auditedAs: auditedSync(noun.name),
    toActions: (input, decision) =>
      syncActions(input.root, { ...decision, status: { ...knownOf(input), ...decision.status } }),
  })
}
