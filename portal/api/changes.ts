/** The stream of changes of the account, once for a browser: the tab that holds the lock reads it and repeats it to the
 *  others. Whatever is lost, the answer is to read again what is on the screen. */
import { cache, keyOf, readAgainSoon, rewrite } from './cache.ts'
import { retryAfterSeconds } from '../../client/follow.ts'
import { after, fraction, now, pause } from '../system.ts'
import { sessionLost } from './client.ts'
import { type Item, type Pages, withChanges } from './apply.ts'
import { type ServerSentEvent, serverSentEvents } from './events.ts'
import { type LiveState, liveState } from './live.ts'
import type { OperationId } from './operations.ts'

/** Which operations show a type of the stream. */
export interface Feed {
  readonly list: OperationId
  readonly read: OperationId | undefined
  /** The member of the read's answer that holds the item. */
  readonly member: string
  /** The read has more than the list: it is read again. */
  readonly isListShort: boolean
}

interface Change {
  readonly type: string
  readonly id: string
  readonly is: 'set' | 'removed' | 'changed'
  readonly item: Item | null
}

type Message =
  | { readonly is: 'hello' }
  | { readonly is: 'state'; readonly state: LiveState }
  | { readonly is: 'reset' }
  | { readonly is: 'changes'; readonly changes: readonly Change[] }

const PATH = '/v1/changes'
const LOCK = 'svccloud-changes'
const BACKOFF_MILLISECONDS = 500
const BACKOFF_MAXIMUM_MILLISECONDS = 30_000
/** A service that asks for more is asked again nevertheless. */
const WANTED_MAXIMUM_MILLISECONDS = 600_000
/** A stream that lasted so long was a good one: the next attempt comes at once. */
const STEADY_MILLISECONDS = 10_000
/** Without a stream for so long, pages read again instead. */
const PATIENCE_MILLISECONDS = 10_000
/** Replicas restart together; their readers do not read together. */
const JITTER_MILLISECONDS = 2_000

/** Follows the stream until the signal ends it. */
export function followChanges(feeds: ReadonlyMap<string, Feed>, signal: AbortSignal): void {
  const channel = new BroadcastChannel(LOCK)
  const follower = new Follower(feeds)
  let isLeader = false
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.is === 'hello') {
      if (isLeader) channel.postMessage({ is: 'state', state: liveState.get() } satisfies Message)
    } else if (!isLeader) follower.receive(data)
  }
  const tell = (message: Message): void => {
    follower.receive(message)
    channel.postMessage(message)
  }
  signal.addEventListener('abort', () => channel.close())
  channel.postMessage({ is: 'hello' } satisfies Message)
  const lead = async (): Promise<void> => {
    isLeader = true
    await readForever(tell, signal)
  }
  // Browsers offer locks on secure origins only; without them each tab reads for itself.
  void (navigator.locks === undefined ? lead() : navigator.locks.request(LOCK, { signal }, lead).catch(() => undefined))
}

async function readForever(tell: (message: Message) => void, signal: AbortSignal): Promise<void> {
  let wait = BACKOFF_MILLISECONDS
  let cursor = ''
  while (!signal.aborted) {
    const began = now()
    const cancel = after(PATIENCE_MILLISECONDS, () => tell({ is: 'state', state: 'polling' }))
    const outcome = sessionLost.get()
      ? 'lost'
      : await readOnce(
          cursor,
          (event) => {
            if (event.id !== '') cursor = event.id
            cancel()
            tellEvent(event, tell)
          },
          signal,
        ).catch(() => 'lost' as const)
    cancel()
    if (signal.aborted) return
    if (outcome === 'signed-out') sessionLost.set(true)
    if (outcome === 'absent') tell({ is: 'state', state: 'polling' })
    else if (liveState.get() === 'live') tell({ is: 'state', state: 'connecting' })
    wait = now() - began > STEADY_MILLISECONDS ? BACKOFF_MILLISECONDS : Math.min(wait * 2, BACKOFF_MAXIMUM_MILLISECONDS)
    const wanted = typeof outcome === 'number' ? Math.min(outcome * 1_000, WANTED_MAXIMUM_MILLISECONDS) : 0
    await pause(wanted + wait * (0.5 + fraction() / 2), signal)
  }
}

/** A number: the service is busy for so many seconds. */
type Outcome = 'ended' | 'lost' | 'signed-out' | 'absent' | number

async function readOnce(
  cursor: string,
  receive: (event: ServerSentEvent) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const query = cursor === '' ? '' : `?${new URLSearchParams({ cursor })}`
  const response = await fetch(PATH + query, { headers: { accept: 'text/event-stream' }, signal })
  if (response.status === 401) return 'signed-out'
  if (response.status === 404) return 'absent'
  if (!response.ok || response.body === null) return retryAfterSeconds(response.headers) ?? 'lost'
  receive({ event: 'open', data: '', id: '' })
  for await (const event of serverSentEvents(response.body)) receive(event)
  return 'ended'
}

/** As the service sends it. */
const changeOf = (data: string): Change => JSON.parse(data) as Change // of our own origin

function tellEvent({ event, data }: ServerSentEvent, tell: (message: Message) => void): void {
  if (event === 'open') tell({ is: 'state', state: 'live' })
  else if (event === 'reset') tell({ is: 'reset' })
  else if (event === 'change') tell({ is: 'changes', changes: [changeOf(data)] })
}

/** Applies what the stream says, once for each frame. */
class Follower {
  readonly #feeds: ReadonlyMap<string, Feed>
  #waiting: Change[] = []

  constructor(feeds: ReadonlyMap<string, Feed>) {
    this.#feeds = feeds
  }

  receive(message: Message): void {
    if (message.is === 'state') liveState.set(message.state)
    else if (message.is === 'reset')
      after(fraction() * JITTER_MILLISECONDS, () => void cache.invalidateQueries({ refetchType: 'active' }))
    else if (message.is === 'changes') {
      if (this.#waiting.length === 0) after(16, () => this.#apply())
      this.#waiting.push(...message.changes)
    }
  }

  #apply(): void {
    const changes = this.#waiting
    this.#waiting = []
    for (const [type, feed] of this.#feeds)
      applyChanges(
        feed,
        changes.filter((change) => change.type === type),
      )
  }
}

/** Each list is written once, however many of its items have changed. */
function applyChanges({ list, read, member, isListShort }: Feed, changes: readonly Change[]): void {
  const items = new Map<string, Item | null>()
  for (const { is, id, item } of changes) {
    const isUnsent = is === 'changed' || (is === 'set' && item === null)
    if (isUnsent) readAgainSoon([list])
    else items.set(id, item)
    if (read === undefined) continue
    const key = keyOf(read, { path: { id } })
    if (item !== null)
      rewrite<Readonly<Record<string, object>>>(key, (answer) => ({
        ...answer,
        [member]: { ...answer[member], ...item },
      }))
    if (isUnsent || item === null || isListShort) readAgainSoon(key)
  }
  if (items.size === 0) return
  for (const [key, pages] of cache.getQueriesData<Pages>({ queryKey: [list] })) {
    if (pages !== undefined && !('pages' in pages)) continue
    let isBehind = false
    rewrite<Pages>(key, (before) => {
      const applied = withChanges(before, items, Object.keys(Object(key[1])).length === 0)
      isBehind = applied.isBehind
      return applied.list
    })
    if (isBehind) readAgainSoon(key)
  }
}
