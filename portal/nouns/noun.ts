/** What the portal has to know of a noun. From one registration come its pages, its place in the navigation, its
 *  entries in the palette, its actions, and which reads the stream of changes keeps true. */
import type { ComponentType } from 'react'
import type { LucideIcon } from 'lucide-react'
import type { BodyOf, ItemOf, ListId, OperationId } from '../api/operations.ts'
import type { Look } from '../ui/state.tsx'
import type { Option } from '../ui/field.tsx'
import type { TextNames } from '../texts/index.ts'

export type NounName = TextNames<'nouns'>
/** Parts of the navigation: those of customers, then those of operators. */
export type Area = 'compute' | 'storage' | 'network' | 'services' | 'account' | 'fleet' | 'work' | 'accounts'
export type FieldName = TextNames<'fields'>
export type ActionName = TextNames<'actions'> & OperationId

/** Any item, by the names of its fields. */
export type Thing = { readonly id: string; readonly [field: string]: unknown }
export type Values = Readonly<Record<string, unknown>>

/** What can be chosen, where the service may have more. */
export interface Offered {
  readonly options: readonly Option[]
  /** There are more than these: they are found by a search. */
  readonly hasMore: boolean
}

export interface FieldViewProps {
  readonly common: {
    readonly label: string
    readonly note: string | undefined
    readonly wrong: string | undefined
    readonly isRequired: boolean
  }
  readonly value: unknown
  readonly set: (value: unknown) => void
}

/** A field of a form. What it accepts comes from the route; label and note from the texts and the route. */
export interface FormField<Name extends string = string> {
  readonly name: Name
  /** How it is asked; by default what its schema suggests. */
  readonly as?: 'cards' | 'select' | 'many' | 'long' | 'code' | 'secret'
  /** Instead of what its schema suggests. */
  readonly view?: ComponentType<FieldViewProps>
  /** How its least and its most are written; by default as numbers. */
  readonly limitText?: (limit: number) => string
  /** A hook: what can be chosen, given what else is filled in and what is searched for. */
  readonly useOptions?: (values: Values, search: string) => readonly Option[] | Offered
  /** Instead of the field's own label. */
  readonly label?: () => string
  readonly note?: () => string
  /** Behind "more settings". */
  readonly isMore?: boolean
  /** Needed although its schema does not say so: one of several that exclude each other. */
  readonly isNeeded?: boolean
  readonly unit?: () => string
  readonly isShown?: (values: Values) => boolean
  /** Chooses the first option as soon as there is one. */
  readonly isFirstChosen?: boolean
  /** The value in the body, from what the form holds. */
  readonly toBody?: (value: unknown) => unknown
}

export interface ActionOf<Item> {
  readonly operation: ActionName
  /** By default that of its operation. Two actions with one operation differ by it. */
  readonly name?: () => string
  /** Possible while something else is in progress. */
  readonly isAnytime?: boolean
  /** What its form holds at first, for one item. */
  initial?(item: Item): Values
  /** Why it is not possible now. Undefined when it is. */
  why?(item: Item): string | undefined
  /** Asked before. Several items at once are confirmed by their number. */
  readonly confirm?: {
    /** Has to be typed: for what holds data or serves traffic. */
    type?(item: Item): string
    goes?(item: Item): readonly string[]
    stays?(item: Item): readonly string[]
  }
  readonly form?: readonly FormField[]
  /** A button of the page; others are in its menu. */
  readonly isFirst?: boolean
}

export interface TabOf<Item> {
  readonly id: string
  readonly name: () => string
  readonly view: ComponentType<{ readonly item: Item }>
}

export interface Noun<Item = Thing> {
  /** As in audit entries and the stream of changes. */
  readonly name: NounName
  readonly area: Area
  readonly icon: LucideIcon
  readonly path: `/${string}`
  readonly list: ListId
  /** Which items of the list are its own; all without it. */
  readonly query?: Readonly<Record<string, string | readonly string[]>>
  /** Without it, its page shows the item of the list, which takes an id. */
  readonly read?: OperationId
  /** Member of the answers that holds it; the answer itself without it. */
  readonly member?: string
  /** Absent when it is made from the page of another noun. */
  readonly create?: OperationId
  /** Changes labels, title and protection. */
  readonly update?: OperationId
  /** What its settings change, with that operation; by default its title or name. */
  readonly edit?: readonly FormField[]
  titleOf(item: Item): string
  /** Items that nobody named are named after another one. */
  readonly namedAfter?: {
    readonly noun: NounName
    /** Undefined for an item that has a name. */
    idOf(item: Item): string | undefined
  }
  stateOf?(item: Item): string
  /** Whether something of it is in progress; by default whether it has an operation. */
  isBusy?(item: Item): boolean
  /** Looks of states; every other state is busy. */
  readonly looks?: Readonly<Record<string, Look>>
  /** Beside name and state. */
  readonly columns: readonly FieldName[]
  readonly facts: readonly FieldName[]
  readonly form?: readonly FormField[]
  readonly initial?: Values
  /** Cents a month and thousandths of a cent an hour of what is filled in. A hook. */
  usePrice?(values: Values): { readonly monthlyCents: number; readonly hourlyMillicents: number } | undefined
  readonly actions: readonly ActionOf<Item>[]
  readonly tabs?: readonly TabOf<Item>[]
  /** Before the facts of the overview. */
  readonly Head?: ComponentType<{ readonly item: Item }>
  /** Reads its credential, on a click. */
  readonly secret?: OperationId
  /** Makes another secret where nobody can read the present one. */
  readonly rotate?: ActionName
  /** What its tabs read, which its actions change. */
  readonly reads?: readonly OperationId[]
  /** What a change of its properties takes away, which is asked before. */
  editGoes?(before: Item, after: Values): readonly string[]
  /** Its read has more than its list: changes are read again. */
  readonly isListShort?: boolean
}

type Registration<List extends ListId, Create extends OperationId, Update extends OperationId> = Omit<
  Noun<ItemOf<List>>,
  'list' | 'create' | 'update' | 'columns' | 'facts' | 'form' | 'edit'
> & {
  readonly list: List
  readonly create?: Create
  readonly update?: Update
  readonly edit?: readonly FormField<Extract<FieldName, keyof NonNullable<BodyOf<Update>>>>[]
  readonly columns: readonly (FieldName & keyof ItemOf<List>)[]
  readonly facts: readonly (FieldName & keyof ItemOf<List>)[]
  readonly form?: readonly FormField<Extract<FieldName, FieldOf<BodyOf<Create>>>>[]
}

/** Fields of a body, and `object.field` for those of its objects. */
type FieldOf<Body> =
  | keyof Body
  | { [Name in keyof Body & string]: `${Name}.${keyof NonNullable<Body[Name]> & string}` }[keyof Body & string]

/** Registers a noun. Names of operations and fields that the API does not have do not compile. */
export const noun = <List extends ListId, Create extends OperationId = never, Update extends OperationId = never>(
  registration: Registration<List, Create, Update>,
): Noun => registration as unknown as Noun // only its own functions see its items

/** What is going on in an item, or undefined. */
export const operationOf = (item: Thing): { readonly kind: string; readonly id: string } | undefined => {
  const operation = item['active_operation']
  return typeof operation === 'object' && operation !== null
    ? (operation as { readonly kind: string; readonly id: string }) // the contract's
    : undefined
}

export const isInProgress = (noun: Noun, item: Thing): boolean => noun.isBusy?.(item) ?? operationOf(item) !== undefined

export const lookOf = (noun: Noun, state: string): Look => noun.looks?.[state] ?? 'busy'
export const hrefOf = (noun: Noun, item: { readonly id: string }): string =>
  `${noun.path}/${encodeURIComponent(item.id)}`
