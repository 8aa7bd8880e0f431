/** How programs treat a noun that keep infrastructure as it is written down: providers, playbooks, `apply`. It has what
 *  does not follow from the routes and the view. Each field of the view is one of three: a wish, which people write; a
 *  fact, which stays until a change moves it; or a moment, which changes by itself. */
import type { z } from 'zod'
import type { Route } from '../../kit/http/route.ts'

/** Values of an attribute by which a change is chosen. */
type Values = Readonly<Record<string, string | boolean | null>>

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
      /** Reads the attribute, which the view lacks. */
      readonly readBy?: Route
    }
  /** Brings about a value. */
  | { readonly by: Route; readonly when: Values }
  /** Adds and removes members of a list one by one. */
  | {
      readonly each: string
      /** The field of a member by which it is the same one. */
      readonly key: string
      readonly list: Route
      readonly add: Route
      readonly remove: Route
    }

export interface ManagedField {
  /** The field of the creation that says it, by value. */
  readonly creates?: { readonly field: string; readonly values: Readonly<Record<string, boolean>> }
  /** When nobody writes it, and neither creation nor view say so. */
  readonly default?: string | boolean
  /** `nothing`: the view does not show it, and it is never compared. `presence`: what is shown is another value, under
   *  `as`, and null means false. */
  readonly shows?: 'nothing' | 'presence'
  readonly as?: string
  /** Null when left out, though the view always shows something. */
  readonly isOptional?: boolean
  readonly isSecret?: boolean
  /** The noun whose id it is. */
  readonly refers?: string
  /** The order of its members means nothing. */
  readonly isSet?: boolean
  /** How two spellings are the same value. */
  readonly same?: 'trimmed' | 'address' | 'cidr'
}

export interface ManagedNoun {
  /** As in answers: `ssh_key`. */
  readonly noun: string
  readonly view: z.ZodObject
  readonly routes: { readonly list: Route; readonly create: Route; readonly read: Route; readonly remove: Route }
  /** What people may say instead of the id. */
  readonly names: readonly string[]
  /** Where a name is unique; absent where it is not. */
  readonly uniqueIn?: 'account' | 'zone'
  /** In their order. */
  readonly changes: readonly ManagedChange[]
  /** What is brought about before the deletion. */
  readonly removeNeeds?: Values
  /** By attribute. */
  readonly fields?: Readonly<Record<string, ManagedField>>
  readonly facts: readonly string[]
  readonly moments: readonly string[]
}

/** The registration of a noun; facts, moments and names that its view lacks do not compile. */
export const managed = <View extends z.ZodObject, Field extends keyof View['shape'] & string>(
  noun: ManagedNoun & {
    readonly view: View
    readonly names: readonly Field[]
    readonly facts: readonly Field[]
    readonly moments: readonly Field[]
  },
): ManagedNoun => noun

const isNames = (sets: readonly string[] | Readonly<Record<string, string>>): sets is readonly string[] =>
  Array.isArray(sets)

/** The attributes that a change sets, with their fields of its body. */
export function setBy(change: ManagedChange): Readonly<Record<string, string>> {
  if ('each' in change) return { [change.each]: '*' }
  if ('when' in change) return Object.fromEntries(Object.keys(change.when).map((name) => [name, '']))
  const { sets } = change
  return isNames(sets) ? Object.fromEntries(sets.map((name) => [name, name])) : sets
}
