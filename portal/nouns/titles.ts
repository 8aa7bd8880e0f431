/** Names of items that nobody named: they are named after another one, such as a boot storage after its server. */
import type { InfiniteData } from '@tanstack/react-query'
import { cache, keyOf, type ListPart } from '../api/cache.ts'
import type { Noun, NounName, Thing } from './noun.ts'
import { pathTo, thingIn, useThing, useThings } from './reads.ts'
import { nounNamed } from './registry.ts'

/** Ids are long: their beginning stands for a name that is not read yet. */
export const shortId = (id: string): string => id.slice(0, 8)

/** An item that was read, alone or in the list of its noun. */
export function knownItem(noun: Noun, id: string): Thing | undefined {
  const { list, query = {}, read } = noun
  const answer =
    read === undefined
      ? undefined
      : cache.getQueryData<Readonly<Record<string, unknown>>>(keyOf(read, { path: pathTo(read, id) }))
  const listed = cache.getQueryData<InfiniteData<ListPart<Thing>>>(keyOf(list, query))
  return thingIn(noun, answer) ?? (listed === undefined ? undefined : byId(listed).get(id))
}

const indexes = new WeakMap<object, ReadonlyMap<string, Thing>>()

/** Long lists are searched for each of their rows. */
function byId(list: InfiniteData<ListPart<Thing>>): ReadonlyMap<string, Thing> {
  const known = indexes.get(list)
  if (known !== undefined) return known
  const index = new Map(list.pages.flatMap(({ items }) => items.map((item) => [item.id, item] as const)))
  indexes.set(list, index)
  return index
}

/** The name of an item that may have been read; else the beginning of its id. */
export function knownTitle(name: NounName, id: string): string {
  const noun = nounNamed(name)
  const item = noun === undefined ? undefined : knownItem(noun, id)
  return item === undefined ? shortId(id) : (noun?.titleOf(item) ?? shortId(id))
}

/** The name of an item, which reads what the item is named after, and what that is named after. */
export function useTitle(noun: Noun, item: Thing): string {
  const after = useNamer(noun, item)
  useNamer(after.noun, after.item)
  return noun.titleOf(item)
}

interface Named {
  readonly noun: Noun
  readonly item: Thing | undefined
}

function useNamer(noun: Noun, item: Thing | undefined): Named {
  const id = item === undefined ? undefined : noun.namedAfter?.idOf(item)
  const namer = namerOf(noun)
  // a hook: called whatever else is so
  const { item: found } = useThing(namer, id ?? '', { isOn: id !== undefined })
  return { noun: namer, item: id === undefined ? undefined : found }
}

const namerOf = (noun: Noun): Noun => nounNamed(noun.namedAfter?.noun ?? noun.name) ?? noun

/** Another value whenever names of several items change: the list of what they are named after. */
export function useNamers(noun: Noun): unknown {
  const { list } = useThings(namerOf(noun), { isOn: noun.namedAfter !== undefined })
  return noun.namedAfter === undefined ? undefined : list.data
}
