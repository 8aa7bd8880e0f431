/** Finds the change that an object needs, and the operation that carries it out. Pure. */
import {
  actionOf,
  auditActionOf,
  type Changeable,
  conditionOf,
  type WithName,
  type OperableSpec,
  type OperableStatus,
  type Rules,
} from '../../changes/kit/define.ts'
import { changesBetween } from '../../changes/kit/judge.ts'
import type { OperationKind } from '../../domain/operations.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { type Condition, storedOf } from '../../resources/kit/shapes.ts'
import type { OperationStart } from './operation/direct-edit.ts'
import { activeOperation, operationActionOf } from './operation/stanza.ts'
import { refusalOf } from './refusal.ts'

export type Root<Spec, Status> = KubeObject<Spec, Status>
export type OperatedSpec = OperableSpec
/** Fields that every such status has. */
export type OperatedStatus = OperableStatus & {
  readonly conditions?: readonly Condition[] | undefined
  readonly observedGeneration?: number | undefined
}

export type AnyChange<Spec> = WithName<Rules<Spec, never>> & {
  readonly action?: string
  readonly audit?: { readonly action: `${string}.${string}` }
  readonly sets?: readonly string[]
}

/** Its creations, its changes and its removal. */
export const everyChange = <Spec, Status, Facts>({
  create,
  copy,
  changes,
  remove,
}: Changeable<Spec, Status, Facts>): readonly AnyChange<Spec>[] => [
  create,
  ...(copy === undefined ? [] : [copy]),
  ...changes,
  remove,
]

/** Whether the object is being deleted, or its newest operation is its removal. */
export const isBeingRemoved = <Spec extends OperatedSpec, Status, Facts>(
  noun: Changeable<Spec, Status, Facts>,
  { metadata, spec: { operation } }: Root<Spec, Status>,
): boolean => metadata.deletionTimestamp !== undefined || operationActionOf(operation) === actionOf(noun.remove)

/** The change that needs an operation and has none yet. `applied` is the spec that the newest operation applied, as the
 *  status shows it; undefined before the object was created. */
export function detectChange<Spec extends OperatedSpec, Status extends OperatedStatus, Facts>(
  noun: Changeable<Spec, Status, Facts>,
  root: Root<Spec, Status>,
  applied: Spec | undefined,
): (AnyChange<Spec> & { readonly operation: OperationKind }) | undefined {
  const { metadata, spec } = root
  if (operationActionOf(spec.operation) === actionOf(noun.remove)) return undefined
  if (metadata.deletionTimestamp !== undefined) return operated(noun.remove)
  if (activeOperation(root) !== undefined) return undefined
  if (applied === undefined) {
    // An object that REST created without an operation shows what it claimed.
    const isCreated = spec.operation !== undefined || noun.platform.some((field) => spec[field] !== undefined)
    return isCreated ? undefined : operated(noun.create)
  }
  const [change] = changesBetween(noun, applied, spec).flatMap((each) => operated(each) ?? [])
  return change === undefined || isRefused(root, change) ? undefined : change
}

const operated = <Change extends { readonly operation?: OperationKind }>(
  change: Change,
): (Change & { readonly operation: OperationKind }) | undefined =>
  change.operation === undefined ? undefined : { ...change, operation: change.operation }

/** The operation that carries out the change. */
export function startOf<Spec extends OperatedSpec, Status extends OperatedStatus, Facts>(
  noun: Changeable<Spec, Status, Facts>,
  { metadata: { name: id, uid }, spec, ...root }: Root<Spec, Status>,
  change: AnyChange<Spec> & { readonly operation: OperationKind },
): OperationStart {
  const facts = noun.factsOf(storedOf({ ...root, metadata: { name: id }, spec }))
  const { arguments: added } = change.stanza?.({ accountId: '', id, uid, spec, facts: facts as never }) ?? {} // its own
  const isNamed = change.operation === auditActionOf({ name: noun.target }, change)
  const parameters = { ...(isNamed ? {} : { action: actionOf(change) }), ...added }
  return { kind: change.operation, ...(Object.keys(parameters).length === 0 ? {} : { arguments: parameters }) }
}

const isRefused = <Spec, Status extends OperatedStatus>(root: Root<Spec, Status>, change: AnyChange<Spec>): boolean =>
  change.claim !== undefined && refusalOf(root, conditionOf(change)) !== undefined
