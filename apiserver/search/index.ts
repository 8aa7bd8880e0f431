/** The search over everything that an account has in the caches, by what its lists show. */
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { SEARCH_RESULTS_MAXIMUM, SEARCH_TYPES, searchResources, type SearchType } from '../../resources/search/index.ts'
import { type Feed, mayRead } from '../kit/feed.ts'
import { contains, type Facets } from '../kit/list/filters.ts'
import type { Parts } from '../kit/parts.ts'

interface Hit {
  readonly type: SearchType
  readonly facets: Facets
  readonly rank: number
}

/** 0 for the id, 1 for the start of the name, 2 for the rest. */
const rankOf = ({ id, name }: Facets, text: string): number =>
  id === text ? 0 : name.toLowerCase().startsWith(text) ? 1 : 2

const compareText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
const compare = (one: Hit, other: Hit): number =>
  one.rank - other.rank ||
  compareText(one.facets.name, other.facets.name) ||
  compareText(one.type, other.type) ||
  compareText(one.facets.id, other.facets.id)

const isSearchType = (type: string): type is SearchType => SEARCH_TYPES.some((known) => known === type)

/** What the caller may list is found; nothing else is looked at. */
export const searchEndpoint = ({ catchUp }: Pick<Parts, 'catchUp'>, feeds: readonly Feed[]): Endpoint =>
  customerEndpoint(searchResources, async ({ caller, query: { q, type: types } }) => {
    await catchUp.account(caller.accountId)
    const text = q.toLowerCase()
    const found = feeds.flatMap(({ type, list, facetsOf }): readonly Hit[] =>
      facetsOf === undefined || !isSearchType(type) || types?.includes(type) === false || !mayRead(caller, list)
        ? []
        : facetsOf(caller.accountId)
            .filter((facets) => contains(facets, text))
            .map((facets) => ({ type, facets, rank: rankOf(facets, text) })),
    )
    const items = found.sort(compare).slice(0, SEARCH_RESULTS_MAXIMUM)
    return {
      status: 200,
      body: {
        items: items.map(({ type, facets: { id, name, zone, state } }) => ({ type, id, name, zone, state })),
      },
    }
  })
