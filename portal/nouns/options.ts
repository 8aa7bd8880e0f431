/** What can be chosen in forms: hooks that read the lists they offer. */
import { itemsOf, useList } from '../api/cache.ts'
import { gibibytes, mebibytes, money } from '../texts/format.ts'
import type { Option } from '../ui/field.tsx'
import type { NounName, Thing, Values } from './noun.ts'
import { useThings } from './reads.ts'
import { theNoun } from './registry.ts'

export const useZones = (): readonly Option[] =>
  itemsOf(useList('list_zones').data).map(({ name, display_name: title, status }) => ({
    id: name,
    name: title === '' ? name : title,
    note: title === '' || title === name ? undefined : name,
    why: status === 'available' ? undefined : status,
  }))

export function usePlans({ zone }: Values): readonly Option[] {
  const plans = itemsOf(useList('list_plans').data)
  const zones = itemsOf(useList('list_zones').data)
  const unavailable = zones.find(({ name }) => name === zone)?.unavailable_plans ?? []
  return plans
    .toSorted((one, other) => one.price_monthly_cents - other.price_monthly_cents)
    .filter(({ name }) => !unavailable.includes(name))
    .map((plan) => ({
      id: plan.name,
      name: plan.name,
      note: `${plan.cores} × CPU · ${mebibytes(plan.memory_mebibytes)} · ${gibibytes(plan.storage_gibibytes)}`,
      end: money(plan.price_monthly_cents),
    }))
}

export function useTemplates({ zone }: Values): readonly Option[] {
  const query = typeof zone === 'string' ? { zone } : {}
  return itemsOf(useList('list_templates', query).data).map(({ name, title, default_user: user }) => ({
    id: name,
    name: title,
    note: user,
  }))
}

/** Items of a noun; with a zone filled in, those of the zone. */
export function optionsOf(name: NounName, isOffered: (item: Thing) => boolean = () => true) {
  return (values: Values): readonly Option[] => {
    const noun = theNoun(name)
    const { items } = useThings(noun)
    const zone = values['zone']
    return items
      .filter((item) => typeof zone !== 'string' || !('zone' in item) || item['zone'] === zone || item['zone'] === null)
      .filter(isOffered)
      .map((item) => ({ id: item.id, name: noun.titleOf(item), note: noteOf(item) }))
  }
}

const noteOf = (item: Thing): string | undefined => {
  const size = item['size_gibibytes']
  const range = item['ipv4_cidr']
  if (typeof size === 'number') return gibibytes(size)
  return typeof range === 'string' ? range : undefined
}
