/** What customers can change of a noun, defined once. REST, kubectl and the controllers are projections of it: REST
 *  turns a body into a desired spec, kubectl sends one, a controller finds one. All three ask the same values which
 *  changes produce it, whether they are allowed, and what they claim. */
import type { Transaction } from 'kysely'
import type { AccountNoun, RowNounName } from '../../domain/account/quota.ts'
import type { AuditChange } from '../../domain/audit/entry.ts'
import type { Extent, OperationKind } from '../../domain/operations.ts'
import type { Tables } from '../../db/tables.ts'
import type { BodyOf, ParamsOf, Route } from '../../kit/http/route.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import type { Random } from '../../kit/sys/random.ts'
import { OPERATION_TARGETS, type Operable, type OperationSpec } from '../../resources/operation/index.ts'
import type { Stored } from '../../resources/kit/shapes.ts'
import type { StorageSpec, StorageStatus } from '../../resources/storage/index.ts'
import type { World } from './world.ts'

type AuditAction = `${string}.${string}`

export type Field<Spec> = keyof Spec & string

/** Fields of a spec with their next values; undefined removes a field. */
export type Patch<Spec> = { readonly [F in keyof Spec]?: Spec[F] | undefined }

export interface Target {
  readonly accountId: string
  /** Name of the object. */
  readonly id: string
}

/** The subject that a change is judged and claimed for. `spec` is the desired one, `facts` are of the object before the
 *  change. */
export interface Subject<Spec, Facts> extends Target {
  /** Undefined at its creation. */
  readonly uid?: string | undefined
  readonly spec: Spec
  /** The spec that a request found. Undefined at the creation, and when a controller claims for an operation: its
   *  object has the new spec already. */
  readonly before?: Spec | undefined
  readonly facts: Facts
  /** What a request asks for in addition to the spec; kubectl asks for nothing. */
  readonly options?: Readonly<Record<string, string>> | undefined
}

/** A change that was claimed but not written. */
export interface Withdrawal extends Target {
  /** Also the id of its operation. */
  readonly changeId: string
  /** In the form of the audit log. */
  readonly changes: readonly AuditChange[]
}

/** What was claimed, if it is shown in the spec or in the arguments of the operation. */
export interface Grant<Spec> {
  readonly spec?: Patch<Spec>
  readonly arguments?: Readonly<Record<string, string>>
}

export interface Means {
  readonly caches: Pick<Caches, 'of'>
  /** The storage that a request has read from the store and judged: it is claimed for that one. Absent otherwise. */
  readonly storage?: KubeObject<StorageSpec, StorageStatus> | undefined
  readonly clock: { now(): Date }
  readonly random: Random
  /** Of the change, and of its operation. */
  readonly changeId: string
}

/** Problems that rules throw name the fields of the spec (`serverId`, `staticRoutes.0.nextHop`): each interface
 *  converts them to its own names. */
export interface Rules<Spec, Facts> {
  /** The operation that brings it about; absent when it takes effect with the write. */
  readonly operation?: OperationKind
  /** The required standing of the account. Its route requires the same. */
  readonly needs?: 'verified' | 'standing'
  /** Throws the Problem that refuses it. Pure. */
  readonly allow?: (subject: Subject<Spec, Facts>, world: World) => void
  /** Claims what it needs; does nothing when that is claimed already. Throws the Problem that refuses it. */
  readonly claim?: (
    tx: Transaction<Tables>,
    subject: Subject<Spec, unknown>,
    means: Means,
  ) => Promise<Grant<Spec> | void>
  /** When a request of REST claims it: with the intent, before the write, or only tried then and claimed by its
   *  operation. At acceptance when absent. */
  readonly claimed?: 'by operation'
  /** Tries the claims of dependent resources, such as machines, which claim separately, in a transaction that is rolled
   *  back. Throws the Problem that refuses it. */
  readonly tries?: (tx: Transaction<Tables>, subject: Subject<Spec, unknown>, means: Means) => Promise<void>
  /** Releases what was claimed at acceptance for a change that was not written; absent when there is nothing to
   *  release. `stored` is the object by then. Safe to repeat. */
  readonly release?: (
    tx: Transaction<Tables>,
    withdrawal: Withdrawal,
    stored: KubeObject<Spec, Operable['status']> | undefined,
  ) => Promise<void>
  /** The condition that shows whether it was claimed; `Claimed` when absent. */
  readonly condition?: string
  /** What its operation has in addition to its kind: extent and arguments. */
  readonly stanza?: (
    subject: Subject<Spec, Facts>,
  ) => Extent & { readonly arguments?: Readonly<Record<string, string>> }
}

/** The account of the request, and the existing objects. */
export interface Surroundings {
  readonly accountId: string
  readonly world: World
}

/** How a request is converted to a part of the spec. */
export interface Reading<Result> {
  readonly route: Route
  readonly read: (body: never, spec: never, params: never, surroundings: Surroundings) => Result
  /** What it asks for in addition. */
  readonly options?: (body: never) => Readonly<Record<string, string>>
  /** The request's names for fields of the spec, where they differ. */
  readonly names: Readonly<Record<string, string>>
}

/** Reads the requests of a route. `spec` is the spec before. */
export const fromBody = <R extends Route, Spec, Result>(
  route: R,
  read: (body: BodyOf<R>, spec: Spec, params: ParamsOf<R>, surroundings: Surroundings) => Result,
  names: Reading<Result>['names'] = {},
): Reading<Result> => ({ route, read, names })

export interface Change<Spec, Facts> extends Rules<Spec, Facts> {
  readonly sets: readonly Field<Spec>[]
  /** The value to compare, when that is not the fields as they are. */
  readonly of?: (spec: Spec) => unknown
  /** Distinguishes changes of the same fields. */
  readonly when?: (after: Spec, before: Spec) => boolean
  /** Its name in the audit log and in the operation, if different. */
  readonly action?: string
  /** Absent when only kubectl can request it. Without a reading, a function of the noun reads the request. */
  readonly by?: Reading<Patch<Spec>> | { readonly route: Route }
}

export interface Creation<Spec> extends Rules<Spec, undefined> {
  readonly name: string
  /** Without a reading a function of the noun reads the request. */
  readonly by: Reading<Spec> | { readonly route: Route }
  /** Whether a creation by REST still needs its operation after the claim; true when absent. */
  readonly starts?: (spec: Spec) => boolean
  /** For the audit log. */
  readonly detail: (spec: Spec, id: string) => Readonly<Record<string, string>>
  /** The entry in the audit log, when it is about another object: a backup is an act on its storage. */
  readonly audit?: { readonly action: AuditAction; readonly idOf: (spec: Spec) => string }
}

/** Without an operation, the object is deleted with the write. */
export interface Removal<Spec, Facts> extends Rules<Spec, Facts> {
  readonly name: string
  readonly by: {
    readonly route: Route
    /** What the query of the request adds to the arguments of the operation. */
    readonly arguments?: (query: never) => Readonly<Record<string, string>>
  }
  /** For the audit log. */
  readonly detail?: (spec: Spec) => Readonly<Record<string, string>>
}

/** Other objects of the account that a field names: one, or a list of them. */
export interface Reference {
  readonly type: ResourceType
  /** Its name in refusals. */
  readonly title: string
  /** Whether kubectl may name an object that does not exist yet. */
  readonly mayFollow: 'never' | 'creation' | 'always'
  /** Whether an existing object can be claimed now; true when absent. If kubectl may name it before it exists, it may
   *  also become ready later. */
  readonly isReady?: (object: KubeObject) => boolean
  /** Throws the Problem that refuses the object. `spec` is that of the object that names it. */
  readonly requireUsable?: (object: KubeObject, spec: unknown) => void
}

/** A change with its name in the noun. */
export type WithName<Rule> = Rule & { readonly name: string }
export type NamedChange<Spec, Facts> = WithName<Change<Spec, Facts>>

/** Nouns without operations; those of a custom image are of its storage. */
export type PlainType = Exclude<AccountNoun, OperationSpec['target']['type'] | RowNounName | 'custom_image'>
/** Whether nouns of the type have no operations. */
export const isPlain = (type: TargetType): type is PlainType => !OPERATION_TARGETS.some((target) => target === type)

type TargetType = OperationSpec['target']['type'] | PlainType

/** A spec and a status that may have operations. */
export type OperableSpec = Operable['spec'] & object
export type OperableStatus = NonNullable<Operable['status']> & object

interface ChangeableInput<Spec, Status, Facts> {
  /** Its name in the audit log and in answers: `floating_ip`. */
  readonly name: TargetType | 'custom_image'
  /** Its name in operations, if different. */
  readonly target?: TargetType
  /** Its name in refusals: `floating IP`. */
  readonly title: string
  /** Completes the sentence "The finalizer goes when". */
  readonly finalizedWhen: string
  readonly factsOf: (stored: Stored<Spec, Status>) => Facts
  /** Fields that only the platform writes. */
  readonly platform?: readonly Field<Spec>[]
  readonly refers?: { readonly [F in Field<Spec>]?: Reference }
  /** The audit log's representation of fields, where that is not their values. */
  readonly audited?: { readonly [F in Field<Spec>]?: (value: Spec[F]) => Readonly<Record<string, unknown>> }
  /** Kinds that the rules look up. */
  readonly reads: readonly ResourceType[]
  /** Throws 400 for texts that violate rules which the schema of the kind cannot express. */
  readonly readable?: (spec: Spec) => void
  readonly create: Creation<Spec>
  /** Creates one from another object of the noun, by an operation of another kind. */
  readonly copy?: Creation<Spec> & { readonly when: (spec: Spec) => boolean }
  /** By name, in the order in which they are judged. */
  readonly changes: Readonly<Record<string, Change<Spec, Facts>>>
  readonly remove: Removal<Spec, Facts>
}

/** The complete definition of the changes of a noun. */
export interface Changeable<Spec, Status, Facts>
  extends Omit<ChangeableInput<Spec, Status, Facts>, 'changes' | 'platform' | 'refers' | 'target'> {
  readonly resource: ResourceType<Spec, Status>
  readonly target: TargetType
  /** Immutable fields. */
  readonly fixed: readonly Field<Spec>[]
  readonly platform: readonly Field<Spec>[]
  readonly refers: readonly (Reference & { readonly field: Field<Spec> })[]
  readonly changes: readonly NamedChange<Spec, Facts>[]
}

/** Defines the changes of the kind. */
export const changesOf = <Spec extends OperableSpec, Status extends OperableStatus, Facts>(
  resource: ResourceType<Spec, Status> & { readonly fixed: readonly string[] },
  { changes, platform = [], refers = {}, ...noun }: ChangeableInput<Spec, Status, Facts>,
): Changeable<Spec, Status, Facts> => ({
  target: noun.name as TargetType, // or the noun names its target
  ...noun,
  resource,
  fixed: resource.fixed as readonly Field<Spec>[], // as the kind is of that spec
  platform,
  refers: fieldsOf(refers).flatMap((field) => {
    const reference = refers[field]
    return reference === undefined ? [] : [{ ...reference, field }]
  }),
  changes: Object.entries(changes).map(([name, change]) => ({ ...change, name })),
})

/** The creation that makes an object of that spec. */
export const creationOf = <Spec>(
  { create, copy }: Pick<Changeable<Spec, never, never>, 'copy' | 'create'>,
  spec: Spec,
): Creation<Spec> => (copy?.when(spec) === true ? copy : create)

const fieldsOf = <Fields extends object>(fields: Fields): readonly (keyof Fields & string)[] =>
  Object.keys(fields) as (keyof Fields & string)[] // as its type has them

/** The name of a change in operations of their target, and in the audit log after the noun. */
export const actionOf = ({ name, action = name }: { readonly name: string; readonly action?: string }): string => action

/** The audit log's name of a change, for every interface, accepted or refused: `floating_ip.assign`. */
export const auditActionOf = (
  { name }: { readonly name: string },
  change: Parameters<typeof actionOf>[0] & { readonly audit?: { readonly action: AuditAction } },
): AuditAction => change.audit?.action ?? `${name}.${actionOf(change)}`

/** The type of the condition that shows whether the change was claimed. */
export const conditionOf = ({ condition = 'Claimed' }: Pick<Rules<never, never>, 'condition'>): string => condition
