/** What the API server does with a kind, and what people may do with it past the API. Only the platform writes a kind
 *  without rules: what nobody declared is refused, never admitted. */
import { isDeepStrictEqual } from 'node:util'
import type { AuditChange } from '../../../domain/audit/entry.ts'
import type { Use } from '../../../domain/claim/use.ts'
import { forbidden, Problem } from '../../../domain/problem.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import { snakeCase } from '../../../resources/kit/view.ts'
import { activeOperationOf, type Operable, type OperationSpec } from '../../../resources/operation/index.ts'
import type { Parts } from '../parts.ts'
import { type AdmissionRequest, typed } from './review.ts'

export type AdmissionParts = Pick<Parts, 'db' | 'caches' | 'clock' | 'random' | 'areAddressesConfirmed'>

/** An admitted change, by its name in the audit log. */
export interface AdmittedChange {
  readonly action: `${string}.${string}`
  readonly changes: readonly AuditChange[]
}

/** Which of the fields are edited, as the audit log names them. */
export const editedFields = <Spec extends object>(
  fields: readonly (keyof Spec & string)[],
  after: Spec,
  before: Spec,
): readonly AuditChange[] =>
  fields
    .filter((field) => !isDeepStrictEqual(after[field], before[field]))
    .map((field) => ({ field: snakeCase(field), before: before[field], after: after[field] }))

type Admission = readonly AdmittedChange[] | Promise<readonly AdmittedChange[]>

/** The rule of each verb: throws the Problem that the API would answer. A verb that is left out is refused. */
export interface AdmissionRules<Spec, Status> {
  readonly create?: (parts: AdmissionParts, object: KubeObject<Spec, Status>) => Admission
  readonly update?: (
    parts: AdmissionParts,
    object: KubeObject<Spec, Status>,
    before: KubeObject<Spec, Status>,
  ) => Admission
  readonly delete?: (parts: AdmissionParts, before: KubeObject<Spec, Status>) => Admission
  /** The audit log's names for the changes that a write requests, also when it is refused. `create`, `update` or
   *  `delete` of the noun when this is absent, and for a write that requests none of its changes. The object is
   *  undefined before it is created and after it is deleted. */
  readonly actionsOf?: (
    after: KubeObject<Spec, Status> | undefined,
    before: KubeObject<Spec, Status> | undefined,
  ) => readonly AdmittedChange['action'][]
  /** Kinds that the rules look up in the caches. */
  readonly reads?: readonly ResourceType[]
  /** Fields of the spec that name other objects, which the rules judge: managed machines too. */
  readonly refers?: readonly string[]
  /** Deletions by the cluster's own controllers, which clean up behind owners and namespaces, are validated too. */
  readonly validatesCleanUp?: boolean
}

export type AdmissionVerb = 'create' | 'update' | 'delete'

export interface Kind {
  readonly resource: ResourceType
  /** What the API server itself does with objects of the kind. */
  readonly access: 'read' | 'write' | 'none'
  /** Its name in operations, when it can be the target of one. */
  readonly target?: OperationSpec['target']['type']
  /** Why the webhook is not called for every write of it; undefined for kinds that it is called for. */
  readonly exemptBecause?: string
  /** Its objects represent disks or guests of a host. The webhook is called for their updates and deletions although
   *  the kind is exempt, and refuses those that are not the platform's. */
  readonly isHeldByHost?: boolean
  /** What people may do with it through Kubernetes; undefined when only their rights in Kubernetes decide. */
  readonly verbs?: readonly AdmissionVerb[]
  /** Whether deletions by the cluster's own controllers, for example the garbage collector, are validated too. */
  readonly validatesCleanUp: boolean
  readonly reads: readonly ResourceType[]
  readonly refers: readonly string[]
  /** The unique values that an object of the account has, which stay its own when PostgreSQL has no claims for them;
   *  absent for kinds that have none. */
  readonly usesOf?: ((object: KubeObject, accountId: string) => readonly Use[]) | undefined
  /** The actions that its rules name; empty when they name none. */
  readonly actionsOf: (request: Pick<AdmissionRequest, 'object' | 'oldObject'>) => readonly AdmittedChange['action'][]
  /** Throws the Problem that refuses the write. */
  readonly admit: (parts: AdmissionParts, request: AdmissionRequest) => Admission
}

/** A kind whose writes by people the webhook validates. */
export const kind = <Spec, Status>(
  resource: ResourceType<Spec, Status>,
  {
    admission: { create, update, delete: remove, actionsOf, reads = [], refers = [], validatesCleanUp = false } = {},
    usesOf,
    ...registration
  }: Pick<Kind, 'access' | 'target'> & {
    readonly admission?: AdmissionRules<Spec, Status>
    readonly usesOf?: (object: KubeObject<Spec, Status>, accountId: string) => readonly Use[]
  },
): Kind => ({
  ...registration,
  // of this kind only
  usesOf: usesOf as Kind['usesOf'],
  resource,
  verbs: Object.entries({ create, update, delete: remove }).flatMap(
    ([verb, rule]) => (rule === undefined ? [] : [verb as AdmissionVerb]), // the keys just above
  ),
  reads,
  refers,
  validatesCleanUp,
  actionsOf: ({ object, oldObject }) => actionsOf?.(typed<Spec, Status>(object), typed<Spec, Status>(oldObject)) ?? [],
  admit(parts, { operation, object, oldObject }) {
    const [after, before] = [typed<Spec, Status>(object), typed<Spec, Status>(oldObject)]
    if (operation === 'CREATE' && after !== undefined && create !== undefined) return create(parts, after)
    if (operation === 'UPDATE' && after !== undefined && before !== undefined && update !== undefined)
      return update(parts, after, before)
    if (operation === 'DELETE' && before !== undefined && remove !== undefined)
      return judgeDeletion((object) => remove(parts, object), before)
    throw writtenByPlatform(resource.plural)
  },
})

/** As everybody who uses Kubernetes expects, a deletion waits for the current operation: its controller deletes the
 *  object when the operation has ended. Everything else is judged now, as it will be then. Throws the Problem that
 *  refuses it. */
async function judgeDeletion<Object extends KubeObject>(
  judge: (before: Object) => Admission,
  before: Object,
): Promise<readonly AdmittedChange[]> {
  try {
    return await judge(before)
  } catch (error) {
    const operation = activeOperationOf(before as Operable) // of kinds without one it is undefined
    const isOwn = error instanceof Problem && error.members.active_operation_id === operation?.id
    if (operation === undefined || !isOwn || error.members.reason !== 'operation_in_progress') throw error
    return judge(withoutOperation(before))
  }
}

const withoutOperation = <Object extends KubeObject>(before: Object): Object => ({
  ...before,
  // objects of any kind
  spec: { ...(before.spec as object), operation: undefined },
  // or nothing
  status: { ...(before.status as object | undefined), operation: undefined },
})

/** A kind that the webhook is not called for, except as `isHeldByHost` says: rights alone decide who writes it. If it
 *  is called all the same, it refuses. */
export const exemptKind = (
  resource: ResourceType,
  { access, because, isHeldByHost = false }: Pick<Kind, 'access' | 'isHeldByHost'> & { readonly because: string },
): Kind => ({
  resource,
  access,
  exemptBecause: because,
  isHeldByHost,
  reads: [],
  refers: [],
  validatesCleanUp: isHeldByHost,
  actionsOf: () => [],
  admit: () => {
    throw writtenByPlatform(resource.plural)
  },
})

/** 403 for a verb without a rule. */
export const writtenByPlatform = (plural: string) => forbidden(`${plural} are written by the platform only.`)
