/** How programs treat a noun that keep infrastructure as it is written down: providers, playbooks, `apply`. It has what
 *  does not follow from the routes and the view. Each field of the view is one of three: a wish, which people write; a
 *  fact, which stays until a change moves it; or a moment, which changes by itself. */
import { z } from 'zod'
import type { Route } from '../../kit/http/route.ts'

/** Values of an attribute by which a change is chosen; of a list, that it has no members. */
type Values = Readonly<Record<string, string | boolean | null | readonly []>>

/** A value of `include` of the list of the noun, and a field of the member of that name: `parts.firewall`. */
type Inclusion = `${string}.${string}`

/** A change in place, in the order in which they are made. */
export type ManagedChange =
  /** Sends attributes, by their names or by those of the body. */
  | {
      readonly by: Route
      /** Attributes; in the body they have the same name, or the one that is given. `*` is the whole body. */
      readonly sets: readonly string[] | Readonly<Record<string, string>>
      /** The field with the id of the other object that is changed, instead of this one. */
      readonly on?: string
      /** What must be so meanwhile; a program brings it about only when people allow it. */
      readonly needs?: Values
      /** Facts and wishes that follow from the change. */
      readonly moves?: readonly string[]
      /** A smaller value is refused. */
      readonly grows?: boolean
      /** Attributes whose change replaces the machines of the noun one after another. */
      readonly rolls?: readonly string[]
      /** Facts that are sent along: the change is refused when they are others by then. */
      readonly expects?: readonly string[]
      /** Reads the attribute, which the view lacks. */
      readonly readBy?: Route
      /** Where a list with `include` shows the same. */
      readonly listed?: Inclusion
    }
  /** Brings about a value. */
  | { readonly by: Route; readonly when: Values }
  /** Adds and removes members of a list one by one. */
  | {
      readonly each: string
      /** The field of a member by which it is the same one; without it, a member of the list is another thing. */
      readonly key: string
      /** Lists the members, where the view does not. */
      readonly list?: Route
      readonly listed?: Inclusion
      readonly add: Route
      readonly remove: Route
      readonly moves?: readonly string[]
    }

/** An object or a list of objects, where what is shown has more fields than what people write. */
interface ManagedMembers {
  /** Rules of its wishes. */
  readonly of?: Readonly<Record<string, ManagedField>>
  readonly facts?: readonly string[]
  readonly moments?: readonly string[]
}

export interface ManagedField extends ManagedMembers {
  /** Names that it had in releases before: programs rename it in what they remember. */
  readonly formerly?: readonly string[]
  /** The field of the creation that says it, by value. */
  readonly creates?: { readonly field: string; readonly values: Readonly<Record<string, boolean>> }
  /** When nobody writes it, and neither creation nor view say so. */
  readonly default?: string | boolean
  /** `nothing`: the view does not show it, and it is never compared. `presence`: what is shown is another value, under
   *  `as`, and null means false. */
  readonly shows?: 'nothing' | 'presence'
  readonly as?: string
  /** Where the view shows it, if not under its name: `backups.retention_days`, or of each member of a list. */
  readonly at?: string
  /** Another attribute: while that is null, the view shows null. */
  readonly nullWithout?: string
  /** Another attribute: while that is not null, the view shows something instead of null. */
  readonly nullWith?: string
  /** Another member of the same object, whose value it has when left out. */
  readonly follows?: string
  /** Another attribute: while that is not null, the service chooses the value. */
  readonly freeWith?: string
  /** Chosen by the service when left out, though the view can show null. */
  readonly isChosen?: boolean
  /** An object that has the defaults of its members when left out. */
  readonly isFilled?: boolean
  /** Its name in programs that use the word themselves: configurations of Terraform count their own resources. */
  readonly alias?: string
  /** Null when left out, though the view always shows something. */
  readonly isOptional?: boolean
  readonly isSecret?: boolean
  /** An action that changes it, at a price: data is lost, or the object moves. Programs use it only when people ask. */
  readonly changedBy?: Route
  /** An edit by kubectl changes it, although no request does. */
  readonly isEdited?: boolean
  /** The noun whose id it is. */
  readonly refers?: string
  /** The order of its members means nothing. */
  readonly isSet?: boolean
  /** How two spellings are the same value. */
  readonly same?: 'trimmed' | 'address' | 'cidr'
}

export interface ManagedRoutes {
  readonly create: Route
  readonly list?: Route
  /** Absent: it is found in the list, or in its parent. */
  readonly read?: Route
  /** Absent: nothing removes it; programs forget it. */
  readonly remove?: Route
}

export interface ManagedParent {
  /** Its attribute with the id of the parent. */
  readonly field: string
  readonly refers: string
  /** The parameters of its paths: that of the parent, and its own where all of its paths are below the parent. */
  readonly parameter: string
  readonly own?: string
  /** The attribute of the parent that keeps the same things; one of both is used. */
  readonly instead?: string
  /** Where the parent shows it, when nothing else lists it. */
  readonly shownIn?: { readonly read: Route; readonly field: string }
}

export interface ManagedNoun {
  /** As in the ids of its routes: `ssh_key`. */
  readonly noun: string
  /** Names that it had in releases before. */
  readonly formerly?: readonly string[]
  /** As in answers, where that is another name. */
  readonly key?: string
  readonly view: z.ZodObject
  readonly routes: ManagedRoutes
  /** Its items may lack facts and wishes, though their schema has them. */
  readonly isListPartial?: boolean
  /** The field that is its id in paths; `id` by default. */
  readonly identity?: string
  /** The noun that it is a part of. */
  readonly parent?: ManagedParent
  /** What people may say instead of the id. */
  readonly names: readonly string[]
  /** Where a name is unique; absent where it is not. */
  readonly uniqueIn?: 'account' | 'zone' | 'parent'
  /** In their order. */
  readonly changes: readonly ManagedChange[]
  /** Fields of the creation that programs leave out: older spellings, and nouns that are kept as nouns. */
  readonly leaves?: readonly string[]
  /** How a creation without an operation ends. */
  readonly ready?: { readonly field: string; readonly is: string; readonly failed: string }
  /** What is brought about before the deletion. */
  readonly removeNeeds?: Values
  /** Parameters of the deletion that programs leave out: other objects would be deleted as well. */
  readonly removeLeaves?: readonly string[]
  /** By attribute. */
  readonly fields?: Readonly<Record<string, ManagedField>>
  readonly facts: readonly string[]
  readonly moments: readonly string[]
}

/** The registration of a noun; facts, moments and names that its view lacks do not compile. */
export const managed = <View extends z.ZodObject, Field extends keyof View['shape'] & string>(
  noun: ManagedNoun & {
    readonly view: View
    readonly identity?: Field
    readonly names: readonly Field[]
    readonly facts: readonly Field[]
    readonly moments: readonly Field[]
  },
): ManagedNoun => noun

/** The fields of a creation that nothing changes later. */
export function fixedIn({ routes, changes, fields = {}, leaves = [] }: ManagedNoun): readonly string[] {
  const set = [
    ...leaves,
    ...changes.flatMap((change) => Object.keys(setBy(change))),
    ...Object.values(fields).map(({ creates }) => creates?.field),
    ...Object.keys(fields).filter((name) => fields[name]?.changedBy !== undefined),
  ]
  return Object.keys(membersOf(routes.create.body)).filter((field) => !set.includes(field))
}

/** The field of a spec with the attribute. */
export const specFieldOf = (attribute: string): string =>
  attribute.replaceAll(/_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase())

const isNames = (sets: readonly string[] | Readonly<Record<string, string>>): sets is readonly string[] =>
  Array.isArray(sets)

/** The attributes that a change sets, with their fields of its body. */
export function setBy(change: ManagedChange): Readonly<Record<string, string>> {
  if ('each' in change) return { [change.each]: '*' }
  if ('when' in change) return Object.fromEntries(Object.keys(change.when).map((name) => [name, '']))
  const { sets } = change
  return isNames(sets) ? Object.fromEntries(sets.map((name) => [name, name])) : sets
}

const wrapped = (schema: z.core.$ZodType): z.core.$ZodType | undefined => {
  if (schema instanceof z.ZodArray) return schema.element
  if (schema instanceof z.ZodPipe) return schema.in
  return schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault
    ? schema.unwrap()
    : undefined
}

/** The fields of an object, or of the members of a list of them. */
export function membersOf(schema: z.core.$ZodType | null | undefined): Readonly<Record<string, z.ZodType>> {
  let inner = schema ?? undefined
  for (let next = inner; next !== undefined; next = wrapped(next)) inner = next
  // a shape is of schemas
  return inner instanceof z.ZodObject ? (inner.shape as Readonly<Record<string, z.ZodType>>) : {}
}

/** What a view shows of an attribute; undefined when it shows nothing. */
export const shownOf = (view: z.ZodType, name: string, { at = name }: ManagedField = {}): z.ZodType | undefined =>
  at.split('.').reduce<z.ZodType | undefined>((schema, part) => membersOf(schema)[part], view)
