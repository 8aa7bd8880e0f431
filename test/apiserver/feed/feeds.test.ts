/** The registrations of the stream of changes: nothing that accounts list is left out, and what an item shows of other
 *  objects touches it. */
import { beforeAll, expect, test } from 'vitest'
import type { z } from 'zod'
import type { AgentConnections } from '../../../apiserver/console/consoles.ts'
import type { IdentityParts } from '../../../apiserver/identity/parts.ts'
import type { Feed } from '../../../apiserver/kit/feed.ts'
import type { Parts } from '../../../apiserver/kit/parts.ts'
import { NOUNS, openNouns } from '../../../apiserver/nouns.ts'
import { Cache } from '../../../kit/kube/cache.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { ResourceType } from '../../../kit/kube/object.ts'
import { CHANGE_TYPES } from '../../../resources/change/index.ts'
import { ROUTES } from '../../../resources/index.ts'
import { SEARCH_TYPES } from '../../../resources/search/index.ts'

/** Whatever is read of it is there, once. */
const anything: any = new Proxy(() => {}, {
  get: (_target, name) =>
    name === Symbol.toPrimitive
      ? () => 'x'
      : name === Symbol.iterator
        ? () => [anything][Symbol.iterator]()
        : name === 'map' || name === 'flatMap'
          ? (convert: (item: unknown) => unknown) => [convert(anything)].flat()
          : name === 'then'
            ? undefined
            : anything,
  apply: () => anything,
})

/** Kinds that are read and followed, since they were cleared. */
const read = new Set<string>()
const followed = new Set<string>()
/** Caches that have every object. */
function everything(type: ResourceType): Cache {
  const cache = new Cache(type, () => {})
  const reads = () => {
    read.add(type.kind)
    return anything
  }
  return Object.assign(cache, {
    get: reads,
    by: () => [reads()],
    list: () => [reads()],
    inNamespace: () => [reads()],
    subscribe: () => void followed.add(type.kind),
  })
}

let feeds: readonly Feed[]
beforeAll(() => {
  const all = new Map<string, Cache>()
  const caches = {
    of(type: ResourceType) {
      const cache = all.get(type.kind) ?? everything(type)
      all.set(type.kind, cache)
      return cache
    },
  } as unknown as Caches // what registrations use of it
  const parts = { caches, catchUp: { include: () => {} } } as unknown as Parts // as above
  const opened = openNouns(parts, {} as IdentityParts, {} as AgentConnections)
  feeds = NOUNS.flatMap((noun) => noun.feeds(opened))
})

test('each type of the stream has exactly one registration', () => {
  expect(feeds.map(({ type }) => type).toSorted()).toEqual(CHANGE_TYPES.toSorted())
})

const ROWS = 'rows of the account: the stream says that they have changed'
const CATALOGUE = 'the catalogue, which is no account’s'
const PART = 'a part of an item, which the stream sends'
const STORED = 'read from the store of objects, whose changes the platform does not see'
/** Lists that are not of a type of the stream. */
const OTHERS: Readonly<Record<string, string>> = {
  list_sessions: ROWS,
  list_members: ROWS,
  list_invitations: ROWS,
  list_accounts: ROWS,
  list_credits: ROWS,
  list_support_consents: ROWS,
  list_api_tokens: ROWS,
  list_account_quotas: ROWS,
  list_audit_entries: ROWS,
  get_network_transfer: ROWS,
  list_billing_log: ROWS,
  list_invoices: ROWS,
  list_payment_methods: ROWS,
  list_webhooks: ROWS,
  list_audit_sinks: ROWS,
  list_webhook_deliveries: ROWS,
  list_private_cloud_requests: ROWS,
  list_quota_requests: ROWS,
  list_notices: 'computed from what the stream sends',
  list_regions: CATALOGUE,
  list_zones: CATALOGUE,
  list_plans: CATALOGUE,
  list_prices: CATALOGUE,
  list_templates: CATALOGUE,
  list_kubernetes_versions: CATALOGUE,
  list_dev_cluster_versions: CATALOGUE,
  list_server_interfaces: PART,
  search_resources: 'results of a search',
  list_object_storage_buckets: STORED,
  list_object_storage_objects: STORED,
  list_database_backups: PART,
  list_kubernetes_cluster_snapshots: PART,
}
const isList = (answer: z.ZodType | null | undefined): boolean =>
  Object.hasOwn((answer as z.ZodObject | undefined)?.shape ?? {}, 'items')

test('the search looks into everything that has a list and objects', () => {
  const searched = feeds.filter(({ list, facetsOf }) => facetsOf !== undefined && list.filters.includes('q'))
  expect(searched.map(({ type }) => type).toSorted()).toEqual([...SEARCH_TYPES].toSorted())
})

test('every list of an account is in the stream, or there is a reason', () => {
  const lists = ROUTES.filter(
    ({ audience, method, answers }) => audience === 'customer' && method === 'GET' && isList(answers[200]),
  ).map(({ id }) => id)
  const sent = feeds.map(({ list }) => list.id).filter((id) => id !== 'get_kubernetes_cluster')
  expect(lists.toSorted()).toEqual([...sent, ...Object.keys(OTHERS)].toSorted())
})

test.each(CHANGE_TYPES)('%s: whatever its view reads touches it', async (type) => {
  const feed = feeds.find((one) => one.type === type)
  read.clear()
  followed.clear()
  for (const source of feed?.sources ?? []) source.follow(() => {})
  // What is not there, as the database, ends it.
  await Promise.resolve(feed)
    .then((found) => found?.itemsOf('account', ['x']))
    .catch(() => {})
  expect([...followed]).toEqual(expect.arrayContaining([...read]))
  if (feed?.isAudited === false) expect([...read]).not.toEqual([])
})
