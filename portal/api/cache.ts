/** The cache of what was read, by operationId and arguments. The stream of changes writes into it. */
import {
  type InfiniteData,
  QueryClient,
  useInfiniteQuery,
  useQuery,
  type UseQueryResult,
  type UseInfiniteQueryResult,
} from '@tanstack/react-query'
import { after } from '../system.ts'
import { type Call, call, sessionLost } from './client.ts'
import { isLive } from './live.ts'
import type { Answer, ItemOf, ListId, OperationId, QueryOf } from './operations.ts'
import { ruleOf } from './portal.ts'
import { Refusal } from './refusal.ts'

const STALE_MILLISECONDS = 30_000
const ATTEMPTS_MAXIMUM = 3
/** While there is no stream: how often to read again while something is in progress on the screen, and otherwise. */
const BUSY_MILLISECONDS = 3_000
const IDLE_MILLISECONDS = 30_000

/** Refusals do not change by asking again; lost connections and busy servers do. */
const isPassing = (error: unknown): boolean =>
  !(error instanceof Refusal) || error.status === 0 || error.status === 502 || error.status === 503

export const cache = new QueryClient({
  defaultOptions: {
    queries: {
      networkMode: 'always',
      staleTime: STALE_MILLISECONDS,
      retry: (failures, error) => failures < ATTEMPTS_MAXIMUM && isPassing(error),
      refetchOnWindowFocus: () => !isLive(),
    },
    // what was sent, and answers with secrets, are kept no longer than the form that sent it
    mutations: { networkMode: 'always', retry: false, gcTime: 0 },
  },
})

export interface ReadOptions {
  /** Nothing is read until it is true. */
  readonly isOn?: boolean
  /** Something of it is in progress: without a stream it is read again every few seconds. */
  readonly isBusy?: boolean
  /** Rows of PostgreSQL, of which the stream sends no items. */
  readonly isAlwaysStale?: boolean
}

const intervalOf = (isBusy: boolean | undefined): number | false =>
  isLive() || sessionLost.get() ? false : isBusy === true ? BUSY_MILLISECONDS : IDLE_MILLISECONDS

export const keyOf = (id: OperationId, input: object = {}): readonly unknown[] => [id, input]

/** Reads once, keeps it, and follows its changes. */
export function useRead<Id extends OperationId>(
  id: Id,
  input: Pick<Call<Id>, 'path' | 'query'> = {},
  { isOn = true, isBusy, isAlwaysStale }: ReadOptions = {},
): UseQueryResult<Answer<Id>> {
  // a hook: called whatever else is so
  const isLost = sessionLost.use()
  return useQuery({
    queryKey: keyOf(id, input),
    queryFn: async ({ signal }) => (await call(id, { ...input, signal })) ?? null,
    enabled: isOn && !isLost,
    refetchInterval: () => intervalOf(isBusy),
    ...(isAlwaysStale === true ? { staleTime: 0, refetchOnWindowFocus: true } : {}),
  }) as UseQueryResult<Answer<Id>> // an empty answer is null, which nobody reads
}

export interface ListPart<Item> {
  readonly items: readonly Item[]
  readonly next_cursor: string | null
}

const PAGE_ITEMS = 100

/** A list, page by page. Lists that are always complete have one page. */
export function useList<Id extends ListId>(
  id: Id,
  query: Partial<QueryOf<Id>> = {},
  { isOn = true, isBusy }: ReadOptions = {},
): UseInfiniteQueryResult<InfiniteData<ListPart<ItemOf<Id>>>> {
  const { isPaged = false } = ruleOf(id)
  // a hook: called whatever else is so
  const isLost = sessionLost.use()
  return useInfiniteQuery({
    queryKey: keyOf(id, query),
    queryFn: async ({ pageParam, signal }) => {
      const paging = { ...(isPaged ? { limit: PAGE_ITEMS } : {}), ...(pageParam === '' ? {} : { cursor: pageParam }) }
      // every list has this shape
      return (await call(id, { query: { ...query, ...paging } as QueryOf<Id>, signal })) as unknown as ListPart<
        ItemOf<Id>
      >
    },
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: cursor }) => cursor ?? undefined,
    enabled: isOn && !isLost,
    refetchInterval: () => intervalOf(isBusy),
  })
}

export const itemsOf = <Item>(data: InfiniteData<ListPart<Item>> | undefined): readonly Item[] =>
  data?.pages.flatMap(({ items }) => items) ?? []

/** Reads again whatever is on the screen from these operations. */
export const readAgain = (...ids: readonly OperationId[]): Promise<unknown> =>
  Promise.all(ids.map((id) => cache.invalidateQueries({ queryKey: [id] })))

const REST_MILLISECONDS = 1_000
/** Keys that are read or were read a moment ago, and whether they have to be read again after it. */
const resting = new Map<string, boolean>()

/** Reads again what is on the screen from the key, and rests a second after it: many changes do not begin it anew. A
 *  reading that is under way ends first; it may have begun before what is asked for now. */
export function readAgainSoon(queryKey: readonly unknown[]): void {
  const name = JSON.stringify(queryKey)
  const isResting = resting.has(name)
  resting.set(name, isResting || cache.isFetching({ queryKey }) > 0)
  if (isResting) return
  const rest = () =>
    after(REST_MILLISECONDS, () => {
      const isWanted = resting.get(name)
      resting.delete(name)
      if (isWanted === true) readAgainSoon(queryKey)
    })
  void cache.invalidateQueries({ queryKey }, { cancelRefetch: false }).then(rest, rest)
}

/** Writes an answer that was read before. What had to be read again still has to be, and a reading that is under way
 *  does not have the last word: it may be older. */
export function rewrite<Read>(queryKey: readonly unknown[], change: (answer: Read) => Read): void {
  const state = cache.getQueryState<Read>(queryKey)
  if (state === undefined) return
  const { data, isInvalidated, fetchStatus } = state
  const next = data === undefined ? undefined : change(data)
  if (next !== data) cache.setQueryData(queryKey, next)
  if (isInvalidated || fetchStatus === 'fetching') readAgainSoon(queryKey)
}

/** Everything that was read is forgotten: another person, another account. */
export const forget = (): void => cache.clear()
