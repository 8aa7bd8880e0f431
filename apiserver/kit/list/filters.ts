/** Filters of lists by what their items show. Complete lists are filtered here (`filterList`), pages where they are
 *  read (`readPage`), both by the same rule. */
import { badField } from '../../../domain/problem.ts'
import type { Endpoint } from '../../../kit/http/endpoint.ts'
import type { Route } from '../../../kit/http/route.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { isSearched } from '../../../resources/kit/filters.ts'

/** What filters and the search read of an item, from what the API shows of it. */
export interface Facets {
  readonly id: string
  /** As people call it; empty without a name. */
  readonly name: string
  readonly zone: string
  readonly state: string
  /** Each as `key=value`. */
  readonly labels: readonly string[]
  /** Names, addresses and labels, in lower case; the id is not among them. */
  readonly texts: readonly string[]
}

/** Fields with the name of an item, the first that it has. */
const CALLED = ['name', 'hostname', 'title', 'address']

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Of an item as the API shows it. */
export function facetsOf(view: unknown): Facets {
  const fields = { ...(view as Readonly<Record<string, unknown>> | null) } // views are objects; of some there is none
  const { labels: named } = fields as { readonly labels?: Readonly<Record<string, string>> } // where it has some
  const labels = Object.entries(named ?? {}).map(([key, value]) => `${key}=${value}`)
  const texts = labels.map((label) => label.toLowerCase())
  for (const [name, value] of Object.entries(fields)) {
    if (isSearched(name) && typeof value === 'string' && value !== '') texts.push(value.toLowerCase())
  }
  const name = CALLED.map((field) => textOf(fields[field])).find((text) => text !== '') ?? ''
  return { id: textOf(fields['id']), name, zone: textOf(fields['zone']), state: textOf(fields['state']), labels, texts }
}

/** Whether the text, in lower case, is part of the id, a name, an address or a label (`key=value`). */
export const contains = ({ id, texts }: Facets, text: string): boolean =>
  id.toLowerCase().includes(text) || texts.some((each) => each.includes(text))

/** Filters by the whole field. */
const FIELDS = ['id', 'name', 'zone', 'state'] as const

type Matches<View> = (view: View) => boolean

/** Whether an item is one that the query asks for; undefined for a query without filters. */
export function matchesOf({ filters }: Pick<Route, 'filters'>, query: unknown): Matches<Facets> | undefined {
  const values = query as Readonly<Record<string, unknown>> // the schema of every query is an object's
  const entries = Object.entries(values).filter(([name, value]) => value !== undefined && filters.includes(name))
  if (entries.length === 0) return undefined
  const tests = entries.map(([name, value]): Matches<Facets> => {
    if (name === 'q') {
      const text = textOf(value).toLowerCase()
      return (facets) => contains(facets, text)
    }
    const wanted = [value].flat()
    if (name === 'label') return ({ labels }) => wanted.every((label) => labels.includes(String(label)))
    const field = FIELDS.find((each) => each === name)
    if (field === undefined) throw new Error(`no list has a filter ${name}`)
    return (facets) => wanted.includes(facets[field])
  })
  return (facets) => tests.every((test) => test(facets))
}

/** The endpoint, whose complete list has only the items that the query asks for. Customers' lists refuse (400) the name
 *  of a zone that does not exist. */
export function filterList({ route, handle }: Endpoint, { caches }: { readonly caches: Caches }): Endpoint {
  const shape = parametersOf(route)
  const isWhole = route.filters.length > 0 && !shape.includes('cursor')
  const namesZone = route.audience === 'customer' && shape.includes('zone')
  if (!namesZone && !isWhole) return { route, handle }
  return {
    route,
    async handle(call) {
      const { zone } = call.query as { readonly zone?: unknown } // of any list
      if (namesZone && typeof zone === 'string' && caches.of(Zone).get({ name: zone }) === undefined)
        throw badField('zone', 'is not a zone')
      const answer = await handle(call)
      const matches = isWhole ? matchesOf(route, call.query) : undefined
      if (matches === undefined || !('body' in answer)) return answer
      const body = answer.body as { readonly items: readonly object[] } // a complete list
      return { ...answer, body: { ...body, items: body.items.filter((item) => matches(facetsOf(item))) } }
    },
  }
}

const parametersOf = ({ method, query }: Route): readonly string[] =>
  method === 'GET' && 'shape' in query && typeof query.shape === 'object' && query.shape !== null
    ? Object.keys(query.shape)
    : []
