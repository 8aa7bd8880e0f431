/** What customers can change of a noun, said once. REST, kubectl and the controllers are projections of it: REST turns
 *  a body into a desired spec, kubectl sends one, a controller finds one. All three ask the same values which changes
 *  lead there, whether they are allowed, and what they claim. */
import type { Transaction } from 'kysely'
import type { AuditChange } from '../../domain/audit/entry.ts'
import type { Extent, OperationKind } from '../../domain/operations.ts'
import type { Tables } from '../../db/tables.ts'
import type { BodyOf, ParamsOf, Route } from '../../kit/http/route.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { Operable, OperationSpec } from '../../resources/operation/index.ts'
import type { Stored } from '../../resources/kit/shapes.ts'
import type { World } from './world.ts'

export type Field<Spec> = keyof Spec & string

/** Fields of a spec with their next values; undefined takes a field out. */
export type Patch<Spec> = { readonly [F in keyof Spec]?: Spec[F] | undefined }

export interface Target {
  readonly accountId: string
  /** Name of the object. */
  readonly id: string
}

/** What a change is judged and claimed for. `spec` is as it will be, `facts` are of the object before the change. */
export interface Subject<Spec, Facts> extends Target {
  /** Undefined at its creation. */
  readonly uid?: string | undefined
  readonly spec: Spec
  /** As a request found it; undefined at its creation, and where the change is brought about: it holds whatever was
   *  claimed by then. */
  readonly before?: Spec | undefined
  readonly facts: Facts
  /** What a request asks for besides the spec; kubectl asks for nothing. */
  readonly asked?: Readonly<Record<string, string>> | undefined
}

/** A change that was claimed and not written. */
export interface Withdrawal extends Target {
  /** As the audit log has them. */
  readonly changes: readonly AuditChange[]
}

/** What was claimed, where it shows in the spec or in the arguments of the operation. */
export interface Grant<Spec> {
  readonly spec?: Patch<Spec>
  readonly arguments?: Readonly<Record<string, string>>
}

export interface Means {
  readonly caches: Pick<Caches, 'of'>
  readonly clock: { now(): Date }
  readonly random: Random
}

/** Fields of the problems that rules throw are those of the spec (`serverId`, `staticRoutes.0.nextHop`): each interface
 *  puts them into its own words. */
export interface Rules<Spec, Facts> {
  /** What brings it about; it takes effect with the write when absent. */
  readonly operation?: OperationKind
  /** What the account must be. Its route requires the same. */
  readonly needs?: 'verified' | 'standing'
  /** Throws the Problem that refuses it. Pure. */
  readonly allow?: (subject: Subject<Spec, Facts>, world: World) => void
  /** Takes what it needs; free when that is taken already. Throws the Problem that refuses it. With a `release` it is
   *  claimed when it is accepted, without one it is tried then and claimed by its operation. */
  readonly claim?: (
    tx: Transaction<Tables>,
    subject: Subject<Spec, unknown>,
    means: Means,
  ) => Promise<Grant<Spec> | void>
  /** Takes what follows from it and is claimed by itself, like machines, in a transaction that is rolled back. Throws
   *  the Problem that refuses it. */
  readonly tries?: (tx: Transaction<Tables>, subject: Subject<Spec, unknown>, means: Means) => Promise<void>
  /** Gives back what was claimed for a change that was not written. `stored` is the object by then. Safe to repeat. */
  readonly release?: (
    tx: Transaction<Tables>,
    withdrawal: Withdrawal,
    stored: KubeObject<Spec, Operable['status']> | undefined,
  ) => Promise<void>
  /** The condition that says whether it was claimed; `Claimed` when absent. */
  readonly condition?: string
  /** What its operation says besides its kind. */
  readonly stanza?: (
    subject: Subject<Spec, Facts>,
  ) => Extent & { readonly arguments?: Readonly<Record<string, string>> }
}

/** Whose request is read, and what there is. */
export interface Surroundings {
  readonly accountId: string
  readonly world: World
}

/** How a request reads as a part of the spec. */
export interface Reading<Result> {
  readonly route: Route
  readonly read: (body: never, spec: never, params: never, surroundings: Surroundings) => Result
  /** What it asks for besides. */
  readonly asked?: (body: never) => Readonly<Record<string, string>>
  /** What the request calls fields of the spec, where that is not their name. */
  readonly names: Readonly<Record<string, string>>
}

/** The reading of the requests of a route. `spec` is the spec before. */
export const fromBody = <R extends Route, Spec, Result>(
  route: R,
  read: (body: BodyOf<R>, spec: Spec, params: ParamsOf<R>, surroundings: Surroundings) => Result,
  names: Reading<Result>['names'] = {},
): Reading<Result> => ({ route, read, names })

export interface Change<Spec, Facts> extends Rules<Spec, Facts> {
  readonly sets: readonly Field<Spec>[]
  /** What is compared, where that is not the fields as they are. */
  readonly of?: (spec: Spec) => unknown
  /** Tells changes of the same fields apart. */
  readonly when?: (after: Spec, before: Spec) => boolean
  /** What the audit log and the operation call it, when that is not its name. */
  readonly action?: string
  /** Absent when only kubectl makes it. Without a reading a function of the noun reads the request. */
  readonly by?: Reading<Patch<Spec>> | { readonly route: Route }
}

export interface Creation<Spec> extends Rules<Spec, undefined> {
  readonly name: string
  /** Without a reading a function of the noun reads the request. */
  readonly by: Reading<Spec> | { readonly route: Route }
  /** Whether a creation by REST has something to bring about behind its claim; it has when absent. */
  readonly starts?: (spec: Spec) => boolean
  /** For the audit log. */
  readonly detail: (spec: Spec) => Readonly<Record<string, string>>
}

/** Without an operation the object is deleted with the write. */
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
  /** As refusals have it. */
  readonly title: string
  /** Whether kubectl may name an object that is not there yet. */
  readonly mayFollow: 'never' | 'creation' | 'always'
  /** Whether one that is there can be claimed by now; it can when absent. What kubectl names, and may follow, may also
   *  become ready later. */
  readonly isReady?: (object: KubeObject) => boolean
  /** Throws the Problem that refuses the object. `spec` is of what names it. */
  readonly requireUsable?: (object: KubeObject, spec: unknown) => void
}

/** A change with the name that its noun gives it. */
export type Named<Rule> = Rule & { readonly name: string }
export type NamedChange<Spec, Facts> = Named<Change<Spec, Facts>>

/** Nouns without operations. */
export type PlainType = 'server_group' | 'dev_cluster' | 'playground'

/** A spec and a status that may have operations. */
export type OperableSpec = Operable['spec'] & object
export type OperableStatus = NonNullable<Operable['status']> & object

interface ChangeableInput<Spec, Status, Facts> {
  /** As operations and references have it: `floating_ip`. */
  readonly name: OperationSpec['target']['type'] | PlainType
  /** As refusals have it: `floating IP`. */
  readonly title: string
  /** What completes "The finalizer goes when". */
  readonly finalizedWhen: string
  readonly factsOf: (stored: Stored<Spec, Status>) => Facts
  /** Fields that never change. */
  readonly fixed: readonly Field<Spec>[]
  /** Fields that only the platform writes. */
  readonly platform?: readonly Field<Spec>[]
  readonly refers?: { readonly [F in Field<Spec>]?: Reference }
  /** What the audit log says of fields, where that is not their values. */
  readonly audited?: { readonly [F in Field<Spec>]?: (value: Spec[F]) => Readonly<Record<string, unknown>> }
  /** Kinds that the rules look up. */
  readonly reads: readonly ResourceType[]
  /** Throws 400 for texts that the schema of the kind cannot hold to its rules. */
  readonly readable?: (spec: Spec) => void
  readonly create: Creation<Spec>
  /** By name, in the order in which they are judged. */
  readonly changes: Readonly<Record<string, Change<Spec, Facts>>>
  readonly remove: Removal<Spec, Facts>
}

/** Everything there is to say about changing a noun. */
export interface Changeable<Spec, Status, Facts>
  extends Omit<ChangeableInput<Spec, Status, Facts>, 'changes' | 'platform' | 'refers'> {
  readonly resource: ResourceType<Spec, Status>
  readonly platform: readonly Field<Spec>[]
  readonly refers: readonly (Reference & { readonly field: Field<Spec> })[]
  readonly changes: readonly NamedChange<Spec, Facts>[]
}

/** Defines what can be changed of the kind. */
export const changesOf = <Spec extends OperableSpec, Status extends OperableStatus, Facts>(
  resource: ResourceType<Spec, Status>,
  { changes, platform = [], refers = {}, ...noun }: ChangeableInput<Spec, Status, Facts>,
): Changeable<Spec, Status, Facts> => ({
  ...noun,
  resource,
  platform,
  refers: fieldsOf(refers).flatMap((field) => {
    const reference = refers[field]
    return reference === undefined ? [] : [{ ...reference, field }]
  }),
  changes: Object.entries(changes).map(([name, change]) => ({ ...change, name })),
})

const fieldsOf = <Fields extends object>(fields: Fields): readonly (keyof Fields & string)[] =>
  Object.keys(fields) as (keyof Fields & string)[] // as its type has them

/** What operations call a change of their target, and the audit log behind its noun. */
export const actionOf = ({ name, action = name }: { readonly name: string; readonly action?: string }): string => action

/** What the audit log calls a change, whoever asks for it, accepted or refused: `floating_ip.assign`. */
export const auditActionOf = (
  { name }: { readonly name: string },
  change: Parameters<typeof actionOf>[0],
): `${string}.${string}` => `${name}.${actionOf(change)}`

/** The type of the condition that says whether the change was claimed. */
export const conditionOf = ({ condition = 'Claimed' }: Pick<Rules<never, never>, 'condition'>): string => condition
