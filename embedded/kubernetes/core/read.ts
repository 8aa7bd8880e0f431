/** Get and list: at the newest revision, at an older one, or in pages at the revision of the first page. */
import { negotiate } from './accept.ts'
import type { Definition } from './definition.ts'
import { json, entryKey, type Answer, type Engine } from './engine.ts'
import { filterOf, type Filter } from './filter.ts'
import type { KubeObject } from './object.ts'
import { rendererOf, type ListMetadata } from './render.ts'
import { countIn, isTrue, type Query, type Request } from './request.ts'
import {
  badRequest,
  expired,
  fieldForbidden,
  fieldNotSupported,
  invalid,
  notFound,
  revisionTooLarge,
} from './status.ts'
import type { Table } from './store-table.ts'
import { toScale } from './scale.ts'
import { revisionIn, watch } from './watch.ts'
import { versionView } from './view.ts'

export interface ReadTarget {
  readonly definition: Definition
  readonly namespace: string
  readonly name: string
  readonly subresource: string
}

export async function get(engine: Engine, target: ReadTarget, request: Request, query: Query): Promise<Answer> {
  const { definition, namespace, name, subresource } = target
  const as = negotiate(request.headers.accept, ['Table', 'PartialObjectMetadata'])
  const requested = revisionIn(query.get('resourceVersion') ?? '')
  if (requested > engine.store.revision()) throw revisionTooLarge(requested, engine.store.revision())
  const stored = engine.store.table(definition.storageKey).get(entryKey(namespace, name))
  await engine.store.durable()
  if (!stored) throw notFound(definition, name)
  const view = versionView(definition, stored)
  return json(
    200,
    subresource === 'scale'
      ? JSON.stringify(toScale(definition, view))
      : rendererOf(definition, as, query.get('includeObject') ?? '', engine.clock).object(view),
  )
}

export async function listOrWatch(
  engine: Engine,
  target: ReadTarget,
  request: Request,
  query: Query,
  isAuthorized: () => boolean,
): Promise<Answer> {
  const { definition, namespace, name } = target
  const filter = filterOf(definition, namespace, name, query)
  const isWatch = isTrue(query, 'watch')
  const as = negotiate(request.headers.accept, [
    'Table',
    isWatch ? 'PartialObjectMetadata' : 'PartialObjectMetadataList',
  ])
  const renderer = rendererOf(definition, as, query.get('includeObject') ?? '', engine.clock)
  if (isWatch) {
    const mayGoOn = () => request.isAuthentic?.() !== false && isAuthorized()
    return watch(engine, { definition, filter, query, signal: request.signal, mayGoOn, render: renderer.event })
  }
  const { views, metadata } = selectPage(engine, definition, filter, query)
  const body = renderer.list(views, metadata)
  await engine.store.durable()
  return json(200, body)
}

interface Page {
  readonly views: readonly KubeObject[]
  readonly metadata: ListMetadata
}

function selectPage(engine: Engine, definition: Definition, filter: Filter, query: Query): Page {
  const limit = countIn(query, 'limit') ?? 0
  const position = positionOf(engine, query)
  const state = stateOf(engine, definition, filter, position.revision)
  const views: KubeObject[] = []
  let last = ''
  let hasMore = false
  for (const [key, stored] of state.scan(position.after)) {
    const view = versionView(definition, stored)
    if (!filter.matches(view)) continue
    hasMore = limit > 0 && views.length === limit
    if (hasMore) break
    views.push(view)
    last = key
  }
  return {
    views,
    metadata: {
      resourceVersion: String(position.revision),
      ...(hasMore ? { continue: tokenOf({ revision: position.revision, after: last }) } : {}),
      ...(hasMore && filter.isEverything ? { remainingItemCount: state.count(last) } : {}),
    },
  }
}

/** The objects of a list at its revision, sorted by key. The cost of a page is its length plus the changes since the
 *  first page. */
interface State {
  scan(after: string | undefined): Iterable<readonly [string, KubeObject]>
  count(after: string): number
}

function stateOf(engine: Engine, definition: Definition, { prefix, onlyKey }: Filter, revision: number): State {
  const table = engine.store.table(definition.storageKey)
  if (revision !== engine.store.revision()) return olderState(table, prefix, revision)
  return {
    scan: (after) => (onlyKey === undefined ? table.scan(prefix, after) : only(onlyKey, table.get(onlyKey), after)),
    count: (after) => table.count(prefix, after),
  }
}

const only = (
  key: string,
  object: KubeObject | undefined,
  after: string | undefined,
): (readonly [string, KubeObject])[] =>
  object === undefined || (after !== undefined && key <= after) ? [] : [[key, object]]

interface Position {
  readonly revision: number
  readonly after: string | undefined
}

/** The revision and the key at which the list starts. */
function positionOf(engine: Engine, query: Query): Position {
  const token = query.get('continue') ?? ''
  const requested = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const current = engine.store.revision()
  const options = { group: 'meta.k8s.io', kind: 'ListOptions' }
  const refuse = (detail: string) => invalid(options, '', [fieldForbidden('resourceVersionMatch', detail)])
  if (!['', 'Exact', 'NotOlderThan'].includes(match))
    throw invalid(options, '', [fieldNotSupported('resourceVersionMatch', match, ['Exact', 'NotOlderThan', ''])])
  if (match !== '' && requested === '')
    throw refuse('resourceVersionMatch is forbidden unless resourceVersion is provided')
  if (match !== '' && token !== '') throw refuse('resourceVersionMatch is forbidden when continue is provided')
  if (match === 'Exact' && requested === '0')
    throw refuse('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
  if (token !== '') {
    if (requested !== '' && requested !== '0')
      throw badRequest('specifying resource version is not allowed when using continue')
    const { revision, after } = positionIn(token)
    return { revision: revision === 0 ? current : revision, after }
  }
  const revision = revisionIn(requested)
  if (revision > current) throw revisionTooLarge(revision, current)
  return { revision: match === 'Exact' ? revision : current, after: undefined }
}

const tokenOf = ({ revision, after }: Position): string =>
  Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: revision, start: after })).toString('base64url')

function positionIn(token: string): Position {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString())
    const record = value as { readonly rv?: unknown; readonly start?: unknown } // validated on the next line
    if (typeof record.rv === 'number' && typeof record.start === 'string')
      return { revision: record.rv, after: record.start }
  } catch {
    // Continues to the refusal: it is not one of our tokens.
  }
  throw badRequest('invalid continue token: continue key is not valid: the token is not one that this server gave out')
}

/** The state at an older revision: the current one without later changes. */
function olderState(table: Table, prefix: string, revision: number): State {
  const changes = table.window.since(revision)
  if (!changes) {
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You must start a new list ' +
        'without the continue parameter.',
    )
  }
  const before = new Map<string, KubeObject | undefined>()
  for (const { key, old } of changes) if (key.startsWith(prefix) && !before.has(key)) before.set(key, old)
  const known = [...before].flatMap(([key, object]) => (object === undefined ? [] : [[key, object] as const]))
  known.sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    *scan(after) {
      const reverted = known.filter(([key]) => after === undefined || key > after)
      let index = 0
      for (const [key, object] of table.scan(prefix, after)) {
        for (let next = reverted[index]; next !== undefined && next[0] <= key; next = reverted[++index]) yield next
        if (!before.has(key)) yield [key, object]
      }
      yield* reverted.slice(index)
    },
    count(after) {
      let count = table.count(prefix, after)
      for (const [key, object] of before)
        if (key > after) count += (object === undefined ? 0 : 1) - (table.get(key) === undefined ? 0 : 1)
      return count
    },
  }
}

/** For collection deletes. */
export function selectAll(engine: Engine, definition: Definition, filter: Filter): KubeObject[] {
  return [...engine.store.table(definition.storageKey).scan(filter.prefix)]
    .map(([, stored]) => stored)
    .filter((stored) => filter.matches(versionView(definition, stored)))
}
