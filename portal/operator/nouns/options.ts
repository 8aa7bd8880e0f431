/** What can be chosen in forms of operators: hooks. */
import { itemsOf, useList } from '../../api/cache.ts'
import type { Option } from '../../ui/field.tsx'

/** The zones that have nodes. */
export const useZonesWithNodes = (): readonly Option[] =>
  [...new Set(itemsOf(useList('get_capacity').data).map(({ zone }) => zone))].map((zone) => ({ id: zone, name: zone }))
