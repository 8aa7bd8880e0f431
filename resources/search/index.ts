/** The search over the resources of an account: public shapes and route. */
import { z } from 'zod'
import { repeated, SearchedText } from '../kit/filters.ts'
import { Id } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

/** The most results of an answer. */
export const SEARCH_RESULTS_MAXIMUM = 20

/** Types whose names, addresses and labels are searched. */
export const SEARCH_TYPES = [
  'server',
  'storage',
  'snapshot',
  'backup',
  'custom_image',
  'network',
  'router',
  'floating_ip',
  'load_balancer',
  'edge',
  'database',
  'kubernetes_cluster',
  'dev_cluster',
] as const
const SearchType = z.enum(SEARCH_TYPES)
export type SearchType = z.infer<typeof SearchType>

const SearchResult = z
  .strictObject({
    type: SearchType.describe('Type of the resource, as in audit entries.'),
    id: Id.describe('Id of the resource.'),
    name: z.string().describe('Its name, hostname, title or address; empty without one.'),
    zone: z.string().describe('Name of its zone; empty without one.'),
    state: z.string().describe('Its state; empty without one.'),
  })
  .meta({ id: 'SearchResult' })

export const searchResources = routesUnder({ path: '/v1/search' }).get('search_resources', '', {
  summary: 'Search resources of all types',
  description:
    `At most ${SEARCH_RESULTS_MAXIMUM} resources whose id, name, title, address or label contains the text: first ` +
    'the one with this id, then those whose name starts with the text. Lists take the same text as q and return all.',
  query: z.strictObject({
    q: SearchedText.describe('The text to find, in letters of either case.'),
    type: repeated(SearchType),
  }),
  answers: { 200: z.strictObject({ items: z.array(SearchResult) }) },
})

export const SEARCH_ROUTES = [searchResources] as const
