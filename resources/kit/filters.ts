/** Filters of lists, from what their items show: a list whose items have a zone can be asked for those of one zone.
 *  Every list gets them (`route` in `define.ts`); a parameter that a route declares itself is its own. */
import { z } from 'zod'
import { NoParameters, type Route } from '../../kit/http/route.ts'
import { DateTime, LabelFilters, ZoneName } from './shapes.ts'

/** The most values of a parameter that may be given more than once. */
const FILTER_VALUES_MAXIMUM = 50
const SEARCHED_CHARACTERS_MAXIMUM = 100

/** As most ids, and as those of payment processors. */
const ListedId = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?$/, 'is not an id')
const ListedName = z.string().min(1).max(255).optional().describe('Returns only those with exactly this name.')

/** A parameter that may be given more than once. */
export const repeated = <Value extends z.ZodType>(value: Value) =>
  z
    .array(value)
    .max(FILTER_VALUES_MAXIMUM)
    .optional()
    .describe(`Returns only these; may be given more than once, at most ${FILTER_VALUES_MAXIMUM} times.`)

/** Bounds of the time of an item. */
export const Period = {
  from: DateTime.optional().describe('Returns only those of this time or later.'),
  to: DateTime.optional().describe('Returns only those before this time.'),
} as const

/** `q`. */
export const SearchedText = z
  .string()
  .trim()
  .min(1)
  .max(SEARCHED_CHARACTERS_MAXIMUM)
  .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must be printable')

/** What people and programs call an item: its names, addresses and labels. */
const NAMES: readonly string[] = ['name', 'title', 'hostname', 'display_name', 'email', 'label', 'labels']
const ADDRESS = /(^|_)(address|ipv4|ipv6|cidr)$/
/** Whether `q` looks into the field of an item, besides its id. */
export const isSearched = (field: string): boolean => NAMES.includes(field) || ADDRESS.test(field)

/** The filters that follow from the fields of the items, by the name of the parameter. */
function filtersFor(item: z.ZodType, path: string): Readonly<Record<string, z.ZodType>> {
  if (!(item instanceof z.ZodObject)) return {}
  // a shape is of schemas
  const { id, name, zone, state, labels } = item.shape as Readonly<Record<string, z.ZodType | undefined>>
  return {
    // a path with an id has that name already
    ...(id === undefined || path.includes('{id}') ? {} : { id: repeated(ListedId) }),
    ...(name === undefined
      ? {}
      : { name: ListedName.optional().describe('Returns only those with exactly this name.') }),
    ...(zone === undefined ? {} : { zone: ZoneName.optional().describe('Returns only those of this zone.') }),
    ...(state instanceof z.ZodEnum ? { state: repeated(state) } : {}),
    ...(labels === undefined ? {} : { label: LabelFilters }),
    ...(Object.keys(item.shape).some(isSearched)
      ? {
          q: SearchedText.optional().describe(
            'Returns only those whose name, title, id, address or label contains this text, in letters of either case.',
          ),
        }
      : {}),
  }
}

/** The items of a list; undefined for other routes. */
export function itemOf({ method, answers }: Pick<Route, 'method' | 'answers'>): z.ZodType | undefined {
  const page = method === 'GET' ? answers[200] : undefined
  if (!(page instanceof z.ZodObject)) return undefined
  const { items, next_cursor: cursor } = page.shape as Readonly<Record<string, z.ZodType | undefined>> // as above
  return items instanceof z.ZodArray && cursor !== undefined ? (items.element as z.ZodType) : undefined // as above
}

/** The filters of a list and its query with them; nothing for other routes. */
export function filtersOf<Query extends z.ZodType>(
  input: Pick<Route, 'method' | 'path' | 'answers'> & { readonly query?: Query },
): Partial<Pick<Route<z.ZodType, Query>, 'query' | 'filters'>> {
  const item = itemOf(input)
  const query: z.ZodType = input.query ?? NoParameters
  if (item === undefined || !(query instanceof z.ZodObject)) return {}
  const own = Object.keys(query.shape)
  const filters = Object.entries(filtersFor(item, input.path)).filter(([name]) => !own.includes(name))
  if (filters.length === 0) return {}
  const all: z.ZodType = query.extend(Object.fromEntries(filters))
  return { query: all as Query, filters: filters.map(([name]) => name) } // handlers read what the route declared
}
