/** The registered nouns, for generic parts: they know none of them by name. */
import type { Feed } from '../api/changes.ts'
import type { Noun, NounName } from './noun.ts'

let registered: readonly Noun[] = []

export const register = (nouns: readonly Noun[]): void => {
  registered = nouns
}

export const allNouns = (): readonly Noun[] => registered
export const nounNamed = (name: string): Noun | undefined => registered.find((each) => each.name === name)

/** A noun that is registered for certain. */
export function theNoun(name: NounName): Noun {
  const found = nounNamed(name)
  if (found === undefined) throw new Error(`no noun ${name}`)
  return found
}

/** Which reads show what the stream of changes sends. */
export const feeds = (): ReadonlyMap<string, Feed> =>
  new Map<string, Feed>([
    ...registered.flatMap(({ name, list, read, member, isListShort = false }) =>
      member === undefined ? [] : [[name, { list, read, member, isListShort }] as const],
    ),
    ['operation', { list: 'list_operations', read: 'get_operation', member: 'operation', isListShort: false }],
  ])
