/** What can be chosen in forms: hooks that read the lists they offer. */
import type { Plan, Template } from '../../client/schema.ts'
import { itemsOf, useList, useRead } from '../api/cache.ts'
import { gibibytes, mebibytes, money, number } from '../texts/format.ts'
import { t } from '../texts/index.ts'
import type { Option } from '../ui/field.tsx'
import type { NounName, Offered, Thing, Values } from './noun.ts'
import { useThings } from './reads.ts'
import { theNoun } from './registry.ts'
import { useNamers } from './titles.ts'

export const useZones = (): readonly Option[] =>
  itemsOf(useList('list_zones').data).map(({ name, display_name: title, status }) => ({
    id: name,
    name: title === '' ? name : title,
    note: title.toLowerCase() === name || title === '' ? undefined : name,
    why: status === 'available' ? undefined : status,
  }))

/** Plans of the zone. One that is too small for the chosen template says so. */
export function usePlans({ zone, template }: Values): readonly Option[] {
  const plans = itemsOf(useList('list_plans').data)
  const zones = itemsOf(useList('list_zones').data)
  const templates = itemsOf(useList('list_templates', typeof zone === 'string' ? { zone } : {}).data)
  const chosen = templates.find(({ name }) => name === template)
  const unavailable = zones.find(({ name }) => name === zone)?.unavailable_plans ?? []
  return plans
    .toSorted((one, other) => one.price_monthly_cents - other.price_monthly_cents)
    .filter(({ name }) => !unavailable.includes(name))
    .map((plan) => ({
      id: plan.name,
      name: plan.name,
      note: `${number(plan.cores)} × CPU · ${mebibytes(plan.memory_mebibytes)} · ${gibibytes(plan.storage_gibibytes)}`,
      end: money(plan.price_monthly_cents),
      why: chosen === undefined ? undefined : tooSmall(plan, chosen),
    }))
}

const tooSmall = (plan: Plan, template: Template): string | undefined =>
  plan.storage_gibibytes < template.min_storage_gibibytes
    ? t().choices.needsDisk(gibibytes(template.min_storage_gibibytes))
    : plan.memory_mebibytes < template.min_memory_mebibytes
      ? t().choices.needsMemory(mebibytes(template.min_memory_mebibytes))
      : undefined

export function useTemplates({ zone }: Values): readonly Option[] {
  const query = typeof zone === 'string' ? { zone } : {}
  return itemsOf(useList('list_templates', query).data).map(({ name, title, default_user: user }) => ({
    id: name,
    name: title,
    note: user,
  }))
}

/** Versions of Kubernetes, newest first. */
export const versionsOf = (list: 'list_kubernetes_versions' | 'list_dev_cluster_versions') => (): readonly Option[] =>
  (useRead(list).data?.items ?? []).map(({ version }) => ({ id: version, name: version }))

/** Items of a noun; with a zone filled in, those of the zone. The service searches where it has more than a page. */
export function optionsOf(name: NounName, isOffered: (item: Thing) => boolean = () => true) {
  return (values: Values, search: string): Offered => {
    const noun = theNoun(name)
    const { list, items } = useThings(noun, {}, search.trim() === '' ? {} : { q: search.trim() })
    useNamers(noun)
    const zone = values['zone']
    const options = items
      .filter((item) => typeof zone !== 'string' || !('zone' in item) || item['zone'] === zone || item['zone'] === null)
      .filter(isOffered)
      .map((item) => ({ id: item.id, name: noun.titleOf(item), note: noteOf(item) }))
    return { options, hasMore: list.hasNextPage }
  }
}

const noteOf = (item: Thing): string | undefined => {
  const size = item['size_gibibytes']
  const range = item['ipv4_cidr']
  if (typeof size === 'number') return gibibytes(size)
  return typeof range === 'string' ? range : undefined
}
