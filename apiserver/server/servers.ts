/** Servers as requests find them: one read through to the store, pages from the cache, JSON encoded once per object. */
import { notFound } from '../../domain/problem.ts'
import { listRecentWrites, type RecentWrite } from '../../db/change/recent-writes.ts'
import { etagOf } from '../../kit/http/conditional.ts'
import type { Position } from '../../kit/http/cursor.ts'
import type { Cache } from '../../kit/kube/cache.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Node, Plan, Template, Zone } from '../../resources/catalog/stored.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../resources/server/stored.ts'
import { type ServerSurroundings, type ServerView, toServerView } from '../../resources/server/routes.ts'
import { newestFirst, sortNewestFirst } from '../list/newest-first.ts'
import type { Parts } from '../parts.ts'
import { storedOf } from '../list/stored.ts'

export type ServerObject = KubeObject<ServerSpec, ServerStatus>

export interface ServerFilter {
  readonly labels: readonly { readonly key: string; readonly value: string }[]
  readonly hostname: string | undefined
}

export interface Servers {
  /** As the store has it now. Throws 404 for ids that are unknown or another account's. */
  read(accountId: string, id: string): Promise<ServerObject>
  /** As the cache knows it; undefined when it does not. */
  find(accountId: string, id: string): ServerObject | undefined
  /** Brings the cache up to what other replicas have written for the account; free without any. */
  catchUp(accountId: string): Promise<void>
  /** At most `count` that come after the position, newest first. */
  page(accountId: string, filter: ServerFilter, after: Position | undefined, count: number): readonly ServerObject[]
  viewOf(server: ServerObject): ServerView
  /** The view as JSON in UTF-8. */
  jsonOf(server: ServerObject): Buffer
  readonly cache: Cache<ServerSpec, ServerStatus>
}

export const etagOfServer = ({ metadata }: ServerObject): string => etagOf(metadata.generation ?? 0)

const ZONE_UNKNOWN = 'The zone is not known yet.'
const LABEL_INDEX = 'api label'
const HOSTNAME_INDEX = 'hostname'
const within = (namespace: string | undefined, text: string): string => `${namespace ?? ''}\n${text}`

export function openServers({
  store,
  caches,
  db,
  clock,
  hasPeers = false,
}: Pick<Parts, 'store' | 'caches' | 'db' | 'clock' | 'hasPeers'>): Servers {
  const cache = caches.of(Server)
  const plans = caches.of(Plan)
  const zones = caches.of(Zone)
  const templates = caches.of(Template)
  cache.addIndex(LABEL_INDEX, ({ metadata, spec }) =>
    Object.entries(spec.labels).map(([key, value]) => within(metadata.namespace, `${key}=${value}`)),
  )
  cache.addIndex(HOSTNAME_INDEX, ({ metadata, spec }) => [within(metadata.namespace, spec.hostname)])
  const ordered = newestFirst(cache)
  const nodes = caches.of(Node)
  const obstacleOf = (name: string) => {
    const zone = zones.get({ name })
    return zone?.status === undefined ? ZONE_UNKNOWN : zone.status.haObstacle
  }
  const surroundingsOf = ({ spec, status }: ServerObject): ServerSurroundings => ({
    plan: plans.get({ name: spec.plan })?.spec,
    zone: zones.get({ name: spec.zone })?.spec,
    haObstacle: obstacleOf(spec.zone),
    template: spec.template === undefined ? undefined : templates.get({ name: spec.template })?.spec,
    work: status?.nodeName === undefined ? undefined : nodes.get({ name: status.nodeName })?.status?.plannedWork,
  })
  const fragments = new WeakMap<ServerObject, Fragment>()

  return {
    cache,
    async read(accountId, id) {
      const server = await store.get(Server, { namespace: accountNamespace(accountId), name: id })
      if (server === undefined) throw notFound('server')
      cache.apply(server)
      return server
    },
    find: (accountId, id) => cache.get({ namespace: accountNamespace(accountId), name: id }),
    async catchUp(accountId) {
      if (!hasPeers) return
      const namespace = accountNamespace(accountId)
      const writes = await listRecentWrites(db, accountId, 'server', clock.now())
      const isBehind = ({ resource: { id }, resourceVersion }: RecentWrite) =>
        Number(cache.get({ namespace, name: id })?.metadata.resourceVersion ?? 0) < Number(resourceVersion)
      await Promise.all(
        writes.filter(isBehind).map(async ({ resource: { id } }) => {
          const server = await store.get(Server, { namespace, name: id })
          if (server !== undefined) cache.apply(server)
        }),
      )
    },
    page(accountId, filter, after, count) {
      const namespace = accountNamespace(accountId)
      const candidates = candidatesOf(cache, namespace, filter)
      if (candidates === undefined) return ordered.page(namespace, after, count)
      return sortNewestFirst(
        candidates.filter((server) => matches(server, filter)),
        after,
      ).slice(0, count)
    },
    viewOf: (server) => toServerView(storedOf(server), surroundingsOf(server)),
    jsonOf(server) {
      const { plan, zone, template, work, haObstacle } = surroundingsOf(server)
      const known = fragments.get(server)
      if (
        known !== undefined &&
        known.plan === plan &&
        known.zone === zone &&
        known.template === template &&
        known.work === work &&
        known.haObstacle === haObstacle
      )
        return known.json
      const json = Buffer.from(
        JSON.stringify(toServerView(storedOf(server), { plan, zone, template, work, haObstacle })),
      )
      fragments.set(server, { json, plan, zone, template, work, haObstacle })
      return json
    },
  }
}

interface Fragment extends ServerSurroundings {
  readonly json: Buffer
}

/** The servers that an index finds for the filter; undefined when there is nothing to filter. */
function candidatesOf(
  cache: Servers['cache'],
  namespace: string,
  { labels, hostname }: ServerFilter,
): ServerObject[] | undefined {
  if (hostname !== undefined) return cache.by(HOSTNAME_INDEX, within(namespace, hostname))
  const [first] = labels
  return first === undefined ? undefined : cache.by(LABEL_INDEX, within(namespace, `${first.key}=${first.value}`))
}

const matches = ({ spec }: ServerObject, { labels, hostname }: ServerFilter): boolean =>
  (hostname === undefined || spec.hostname === hostname) &&
  labels.every(({ key, value }) => Object.hasOwn(spec.labels, key) && spec.labels[key] === value)
