/** A watch as lines of JSON: the initial state if requested, then every change, with bookmarks in between. */
import { groupVersionOf, type Definition } from './definition.ts'
import type { Answer, Engine } from './engine.ts'
import type { Filter } from './filter.ts'
import type { KubeObject } from './object.ts'
import { isTrue, countIn, type Query } from './request.ts'
import {
  badRequest,
  expired,
  fieldForbidden,
  invalid,
  revisionTooLarge,
  toStatus,
  unexpected,
  type Cause,
} from './status.ts'
import type { StoreChange } from './store-table.ts'
import type { Subscription } from './watch-hub.ts'
import { versionView } from './view.ts'

const BOOKMARK_MILLISECONDS = 15_000
const FIRST_BOOKMARK_MILLISECONDS = 100
const TIMEOUT_LEAST_SECONDS = 1_800
const TIMEOUT_MOST_SECONDS = 86_400
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end'

export interface WatchRequest {
  readonly definition: Definition
  readonly filter: Filter
  readonly query: Query
  readonly signal: AbortSignal | undefined
  /** Whether its user may still watch; checked at every bookmark interval, even if no bookmarks are sent. */
  readonly mayGoOn: () => boolean
  /** The text of an object in the client's representation. */
  readonly render: (view: KubeObject) => string
}

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
const frame = (type: EventType, object: string): string => `{"type":"${type}","object":${object}}`

/** Returns at once; later refusals are ERROR events within the stream. */
export async function watch(engine: Engine, request: WatchRequest): Promise<Answer> {
  const { definition, query } = request
  checkOptions(query)
  countIn(query, 'timeoutSeconds') // an invalid value is refused before the stream starts
  const requested = query.get('resourceVersion') ?? ''
  if (requested !== '' && !/^\d{1,15}$/.test(requested)) throw unexpected(badRevision(requested))
  const after = revisionIn(requested)
  const current = engine.store.revision()
  if (after > current) throw revisionTooLarge(after, current)
  const wantsState = query.get('sendInitialEvents') === null ? after === 0 : isTrue(query, 'sendInitialEvents')
  const start = wantsState || after === 0 ? current : after
  const state = wantsState ? initialState(engine, request) : []
  const subscription = engine.watches.subscribe(definition.storageKey, start)
  await engine.store.durable()
  const body = subscription
    ? stream(engine, request, subscription, state, start)
    : tooOld(after, engine.store.table(definition.storageKey).window.floor())
  return { status: 200, headers: { 'content-type': 'application/json' }, body }
}

function checkOptions(query: Query): void {
  const causes: Cause[] = []
  const match = query.get('resourceVersionMatch') ?? ''
  if (query.get('sendInitialEvents') !== null && match !== 'NotOlderThan') {
    causes.push(
      fieldForbidden('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    )
  } else if (match !== '' && query.get('sendInitialEvents') === null) {
    causes.push(
      fieldForbidden(
        'resourceVersionMatch',
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      ),
    )
  }
  if (isTrue(query, 'sendInitialEvents') && !isTrue(query, 'allowWatchBookmarks')) {
    causes.push(fieldForbidden('sendInitialEvents', 'sendInitialEvents requires setting allowWatchBookmarks to true'))
  }
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', causes)
}

const badRevision = (text: string): string =>
  `resourceVersion: Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: ` +
  'invalid syntax'

/** 0 for an empty text. Throws 400. */
export function revisionIn(text: string): number {
  if (text === '') return 0
  if (!/^\d{1,15}$/.test(text)) throw badRequest(`invalid resource version: ${badRevision(text)}`)
  return Number(text)
}

function initialState(engine: Engine, { definition, filter }: WatchRequest): KubeObject[] {
  const state: KubeObject[] = []
  for (const [, stored] of engine.store.table(definition.storageKey).scan(filter.prefix)) {
    const view = versionView(definition, stored)
    if (filter.matches(view)) state.push(view)
  }
  return state
}

async function* tooOld(requested: number, floor: number): AsyncGenerator<string> {
  yield frame('ERROR', JSON.stringify(toStatus(expired(`too old resource version: ${requested} (${floor})`))))
}

async function* stream(
  engine: Engine,
  request: WatchRequest,
  subscription: Subscription,
  state: readonly KubeObject[],
  start: number,
): AsyncGenerator<string> {
  const { query, signal, render } = request
  const hasBookmarks = isTrue(query, 'allowWatchBookmarks')
  const stopTimers = arm(engine, subscription, query)
  const onAbort = () => subscription.end()
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    if (signal?.aborted) return
    for (const view of state) yield frame('ADDED', render(view))
    if (isTrue(query, 'sendInitialEvents')) yield bookmark(request, start, { [INITIAL_EVENTS_END]: 'true' })
    for (let item = await subscription.next(); item !== undefined; item = await subscription.next()) {
      if (typeof item !== 'string') {
        const line = frameOf(request, item)
        if (line !== undefined) yield line
        continue
      }
      if (!request.mayGoOn()) return
      if (hasBookmarks) yield bookmark(request, Math.max(start, engine.store.published()))
      if (item === 'expired') return
    }
  } finally {
    stopTimers()
    signal?.removeEventListener('abort', onAbort)
    subscription.end()
  }
}

/** Starts the bookmarks and the timeout of a watch; returns a function that stops both. */
function arm(engine: Engine, subscription: Subscription, query: Query): () => void {
  const { clock, random } = engine
  const requested = countIn(query, 'timeoutSeconds') ?? 0
  const seconds =
    requested > 0 ? Math.min(requested, TIMEOUT_MOST_SECONDS) : TIMEOUT_LEAST_SECONDS * (1 + random.fraction())
  const stopTimeout = clock.after(seconds * 1000, () => subscription.note('expired'))
  let stopBookmark = () => {}
  const next = (milliseconds: number) => {
    stopBookmark = clock.after(milliseconds, () => {
      subscription.note('bookmark')
      next(BOOKMARK_MILLISECONDS)
    })
  }
  // A short watch gets its bookmark well before it ends.
  next(Math.max(FIRST_BOOKMARK_MILLISECONDS, Math.min(BOOKMARK_MILLISECONDS, (seconds - 2) * 1000)))
  return () => {
    stopTimeout()
    stopBookmark()
  }
}

/** The event of a change for this watch: objects may enter and leave its selection. */
function frameOf({ definition, filter, render }: WatchRequest, change: StoreChange): string | undefined {
  if (!change.key.startsWith(filter.prefix)) return undefined
  if (filter.onlyKey !== undefined && change.key !== filter.onlyKey) return undefined
  const isIn = change.object !== undefined && filter.matches(versionView(definition, change.object))
  const wasIn = change.old !== undefined && filter.matches(versionView(definition, change.old))
  if (isIn) return frame(wasIn ? 'MODIFIED' : 'ADDED', render(versionView(definition, change.last)))
  if (!wasIn || change.old === undefined) return undefined
  // An object that left the selection is shown in its old state, with the revision at which it left.
  const { old, revision } = change
  return frame(
    'DELETED',
    render(
      versionView(
        definition,
        change.object === undefined
          ? change.last
          : { ...old, metadata: { ...old.metadata, resourceVersion: String(revision) } },
      ),
    ),
  )
}

function bookmark(
  { definition }: WatchRequest,
  revision: number,
  annotations?: Readonly<Record<string, string>>,
): string {
  const metadata = {
    resourceVersion: String(revision),
    creationTimestamp: null,
    ...(annotations ? { annotations } : {}),
  }
  return frame('BOOKMARK', JSON.stringify({ kind: definition.kind, apiVersion: groupVersionOf(definition), metadata }))
}
