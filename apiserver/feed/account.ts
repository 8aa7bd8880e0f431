/** The streams of one account in this process. Touched items are gathered, read once, and sent to every stream that may
 *  see them. Everything that reads and sends takes turns, so that nobody gets an older state after a newer one. */
import { createHash } from 'node:crypto'
import type { AuditEntry } from '../../domain/audit/chain.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { isNewer } from '../../kit/kube/cache.ts'
import { Mutex } from '../../kit/sys/mutex.ts'
import type { Outages } from '../../kit/sys/outages.ts'
import { accountNamespace } from '../../resources/index.ts'
import type { ResetReason } from '../../resources/change/index.ts'
import type { Feed } from '../kit/feed.ts'
import type { Touched, TouchLog } from './log.ts'

/** What a client knows: everything up to this version of Kubernetes and this entry of its audit log. */
export interface Place {
  readonly version: string
  readonly sequence: number
}

/** One connection. */
export interface Stream {
  /** Whether its caller wants items of this type, and may see them. */
  readonly accepts: (type: string) => boolean
  /** Sends text; a stream that has ended takes nothing. */
  readonly push: (text: string) => void
  /** The place after everything that was sent, for the client to continue from. */
  readonly cursorOf: (place: Place) => string
}

export interface AccountParts {
  readonly clock: Clock
  readonly feeds: ReadonlyMap<string, Feed>
  readonly log: TouchLog
  readonly outages: Outages
  /** The version up to which every source is known. */
  readonly syncedVersion: () => string
  readonly readSequence: (accountId: string) => Promise<number>
  /** At most `limit` entries after the sequence, oldest first. */
  readonly readEntries: (accountId: string, after: number, limit: number) => Promise<readonly AuditEntry[]>
  /** Brings the caches up to what another replica has sent. */
  readonly reach: (accountId: string, version: string) => Promise<void>
}

/** Changes of one moment are sent together. */
const GATHER_MILLISECONDS = 20
/** The shortest time between two states of one item. */
const GAP_MILLISECONDS = 250
const RETRY_MILLISECONDS = 1_000
/** More items at once are not worth sending: the client reads its lists again. */
export const BATCH_MAXIMUM = 500
/** Characters of one batch; the bound of unread text of a stream is larger. */
const BATCH_CHARACTERS_MAXIMUM = 500_000
/** Items whose last state is remembered, so that it is not sent twice. */
const SENT_MAXIMUM = 1_000

export interface AccountStreams {
  readonly size: number
  touch(touched: Touched): void
  /** Every item of the feed. */
  touchAll(feed: Feed): void
  /** The audit log has this many entries now. */
  advance(sequence: number): Promise<void>
  /** Sends what happened after the place, or that the client must read everything again; then what happens. */
  join(stream: Stream, from: Place | 'start' | 'unknown'): Promise<void>
  leave(stream: Stream): void
  /** The cursor for a quiet moment; undefined while something is on its way to the stream. */
  quietCursor(stream: Stream): string | undefined
}

export function openAccountStreams(parts: AccountParts, accountId: string): AccountStreams {
  const { clock, feeds, log, outages } = parts
  const turns = new Mutex()
  const streams = new Set<Stream>()
  const pending = new Map<string, Touched>()
  const sentAt = new Map<string, number>()
  /** Digests of the last states. */
  const sent = new Map<string, string>()
  let sequence = 0
  let joining = 0
  let isSending = false
  let cancel: (() => void) | undefined

  const placeNow = (): Place => ({ version: parts.syncedVersion(), sequence })

  function flushAfter(milliseconds: number): void {
    cancel ??= clock.after(milliseconds, () => {
      cancel = undefined
      void turns.run(async () => {
        isSending = true
        const isDone = await outages.attempt(flush, { account_id: accountId }, accountId)
        isSending = false
        if (pending.size > 0 && streams.size > 0) flushAfter(isDone ? GAP_MILLISECONDS : RETRY_MILLISECONDS)
      })
    })
  }

  const touch = (touched: Touched): void => {
    if (streams.size + joining === 0) return
    note(pending, touched)
    flushAfter(GATHER_MILLISECONDS)
  }

  /** Takes what may be sent now. */
  function takeDue(): readonly Touched[] {
    const now = clock.monotonicMilliseconds()
    for (const [key, at] of sentAt) if (at + GAP_MILLISECONDS <= now) sentAt.delete(key)
    const due: Touched[] = []
    for (const [key, touched] of pending) {
      if (sentAt.has(key)) continue
      pending.delete(key)
      sentAt.set(key, now)
      due.push(touched)
    }
    return due
  }

  async function flush(): Promise<void> {
    const due = takeDue()
    // What is sent below is as new as this place, unless something waits.
    const place = pending.size === 0 ? placeNow() : undefined
    if (due.length === 0) return
    const events = due.length > BATCH_MAXIMUM ? undefined : await eventsOf(due).catch(putBack(due))
    if (events === undefined || lengthOf(events) > BATCH_CHARACTERS_MAXIMUM) {
      sent.clear()
      for (const stream of streams) stream.push(resetText('too_many_changes', stream.cursorOf(place ?? placeNow())))
      return
    }
    const news = events.filter(isNews)
    for (const stream of streams) send(stream, news, place)
  }

  /** Whether the streams do not have this state; remembers it. */
  function isNews({ key, text, isLast }: Event): boolean {
    const digest = createHash('sha256').update(text).digest('base64')
    if (sent.get(key) === digest) return false
    sent.delete(key)
    if (isLast) return true
    sent.set(key, digest) // newest last
    const [oldest] = sent.keys()
    if (sent.size > SENT_MAXIMUM && oldest !== undefined) sent.delete(oldest)
    return true
  }

  const putBack = (due: readonly Touched[]) => (error: unknown) => {
    for (const touched of due) note(pending, touched)
    sentAt.clear()
    throw error
  }

  /** Reads the items, those of a feed together. */
  async function eventsOf(due: readonly Touched[]): Promise<readonly Event[]> {
    const events: Event[] = []
    for (const [type, some] of Map.groupBy(due, (touched) => touched.type)) {
      const ids = some.map(({ id }) => id)
      const items = await feeds.get(type)?.itemsOf(accountId, ids)
      for (const { id, isOwn } of some) {
        const item = items?.get(id)
        if (item !== undefined) events.push(eventOf({ type, id, is: 'set' }, item.toString()))
        else if (items === undefined) events.push(eventOf({ type, id, is: 'changed' }))
        else if (isOwn) events.push(eventOf({ type, id, is: 'removed' }))
      }
    }
    return events
  }

  async function resume(stream: Stream, from: Place): Promise<void> {
    await parts.reach(accountId, from.version)
    const place = {
      version: newer(parts.syncedVersion(), from.version),
      sequence: Math.max(sequence, from.sequence),
    }
    const objects = log.since(accountNamespace(accountId), from.version)
    const entries = await parts.readEntries(accountId, from.sequence, BATCH_MAXIMUM + 1)
    if (objects === undefined) return void stream.push(resetText('cursor_too_old', stream.cursorOf(place)))
    const due = new Map<string, Touched>()
    for (const touched of [...objects, ...rowsOf(entries, feeds)]) note(due, touched)
    const events =
      entries.length > BATCH_MAXIMUM || due.size > BATCH_MAXIMUM ? undefined : await eventsOf([...due.values()])
    if (events === undefined || lengthOf(events) > BATCH_CHARACTERS_MAXIMUM)
      return void stream.push(resetText('too_many_changes', stream.cursorOf(place)))
    send(stream, events, place, ': resumed\n')
  }

  return {
    get size() {
      return streams.size
    },
    touch,
    touchAll(feed) {
      for (const id of feed.idsOf?.(accountId) ?? []) touch({ type: feed.type, id, isOwn: false })
    },
    async advance(head) {
      if (head <= sequence) return
      const entries = await parts.readEntries(accountId, sequence, BATCH_MAXIMUM + 1)
      for (const touched of rowsOf(entries, feeds)) touch(touched)
      sequence = Math.max(sequence, entries.at(-1)?.sequence ?? head)
    },
    async join(stream, from) {
      joining++
      try {
        await turns.run(async () => {
          if (streams.size === 0) sequence = await parts.readSequence(accountId)
          if (typeof from !== 'string') await resume(stream, from)
          else stream.push(resetText(from === 'start' ? 'start' : 'cursor_unknown', stream.cursorOf(placeNow())))
          streams.add(stream)
        })
      } finally {
        joining--
      }
    },
    leave(stream) {
      streams.delete(stream)
      if (streams.size + joining > 0) return
      cancel?.()
      cancel = undefined
      pending.clear()
    },
    quietCursor: (stream) =>
      pending.size === 0 && !isSending && streams.has(stream) ? stream.cursorOf(placeNow()) : undefined,
  }
}

const newer = (one: string, other: string): string => (isNewer(other, one) ? other : one)

interface Event {
  readonly key: string
  readonly type: string
  readonly text: string
  /** Nothing is left of the item that a later state could be equal to. */
  readonly isLast: boolean
}

const eventOf = (
  { type, id, is }: { readonly type: string; readonly id: string; readonly is: 'set' | 'removed' | 'changed' },
  item = 'null',
): Event => ({
  key: `${type} ${id}`,
  type,
  // the item is JSON already
  text: `event: change\ndata: ${JSON.stringify({ type, id, is }).slice(0, -1)},"item":${item}}\n\n`,
  isLast: is !== 'set',
})

const resetText = (reason: ResetReason, cursor: string): string =>
  `event: reset\ndata: ${JSON.stringify({ reason })}\nid: ${cursor}\n\n`

const lengthOf = (events: readonly Event[]): number => events.reduce((length, { text }) => length + text.length, 0)

function send(stream: Stream, events: readonly Event[], place: Place | undefined, before = ''): void {
  const texts = events.filter(({ type }) => stream.accepts(type)).map(({ text }) => text)
  const id = place === undefined ? '' : `id: ${stream.cursorOf(place)}\n\n`
  if (texts.length > 0 || before !== '') stream.push(`${before}${texts.join('')}${id}`)
}

function note(touched: Map<string, Touched>, { type, id, isOwn }: Touched): void {
  const key = `${type} ${id}`
  touched.set(key, { type, id, isOwn: isOwn || touched.get(key)?.isOwn === true })
}

/** The rows that accepted requests have changed. Objects are found by their sources. */
const rowsOf = (entries: readonly AuditEntry[], feeds: ReadonlyMap<string, Feed>): readonly Touched[] =>
  entries.flatMap(({ resource_type: type, resource_id: id, outcome }) =>
    outcome === 'success' && id !== '' && feeds.get(type)?.isAudited !== false ? [{ type, id, isOwn: true }] : [],
  )
