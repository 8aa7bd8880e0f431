/** The streams of one account in this process. Touched items are gathered, read once, and sent to every stream that may
 *  see them. Everything that reads and sends takes turns, so that nobody gets an older state after a newer one. */
import { createHash } from 'node:crypto'
import type { AuditEntry } from '../../domain/audit/chain.ts'
import { defined } from '../../domain/defined.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { isNewer } from '../../kit/kube/cache.ts'
import { Mutex } from '../../kit/sys/mutex.ts'
import type { Outages } from '../../kit/sys/outages.ts'
import { accountNamespace } from '../../resources/index.ts'
import type { ResetReason } from '../../resources/change/index.ts'
import type { Feed } from '../kit/feed.ts'
import type { TouchedItem, TouchLog } from './log.ts'

/** What a client knows: everything up to this version of Kubernetes and this entry of its audit log. */
export interface Place {
  readonly version: string
  readonly sequence: number
}

/** What is sent together. */
export interface News {
  /** Changes are missing before these. */
  readonly reset?: ResetReason
  /** Each is the JSON of a change. */
  readonly changes: readonly string[]
  /** After everything that was sent; undefined while more is on its way. */
  readonly place?: Place
}

/** One reader. */
export interface Stream {
  /** Whether its caller wants items of this type, and may see them. */
  readonly accepts: (type: string) => boolean
  /** A stream that has ended takes nothing. */
  readonly push: (news: News) => void
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
  /** Brings the lists of all replicas up to the version. */
  readonly share: (accountId: string, version: string) => Promise<void>
  /** Does the work in the name of the account, whatever caused it. */
  readonly inName: <Result>(accountId: string, work: () => Result) => Result
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

export class AccountStreams {
  readonly #parts: AccountParts
  readonly #accountId: string
  readonly #turns = new Mutex()
  readonly #streams = new Set<Stream>()
  readonly #pending = new Map<string, TouchedItem>()
  readonly #sentAt = new Map<string, number>()
  /** Digests of the last states that every stream has. */
  readonly #sent = new Map<string, string>()
  #sequence = 0
  #joining = 0
  #isSending = false
  #cancel: (() => void) | undefined

  constructor(parts: AccountParts, accountId: string) {
    this.#parts = parts
    this.#accountId = accountId
  }

  touch(touched: TouchedItem): void {
    if (this.#streams.size + this.#joining === 0) return
    note(this.#pending, touched)
    this.#flushAfter(GATHER_MILLISECONDS)
  }

  /** Touches every item of the feed. */
  touchAll({ type, idsOf }: Feed): void {
    for (const id of idsOf?.(this.#accountId) ?? []) this.touch({ type, id, isOwn: false })
  }

  /** The audit log has this many entries now. */
  async advance(head: number): Promise<void> {
    if (head <= this.#sequence) return
    const { readEntries, feeds } = this.#parts
    const entries = await readEntries(this.#accountId, this.#sequence, BATCH_MAXIMUM + 1)
    for (const touched of rowsOf(entries, feeds)) this.touch(touched)
    this.#sequence = Math.max(this.#sequence, entries.at(-1)?.sequence ?? head)
  }

  /** Sends what happened after the place, or that the client must read everything again; then what happens. */
  async join(stream: Stream, from: Place | 'start' | 'unknown'): Promise<void> {
    this.#joining++
    try {
      await this.#turns.run(async () => {
        if (this.#streams.size === 0) this.#sequence = await this.#parts.readSequence(this.#accountId)
        if (typeof from !== 'string') await this.#resume(stream, from)
        else await this.#reset([stream], from === 'start' ? 'start' : 'cursor_unknown', this.#placeNow())
        this.#streams.add(stream)
        // It has read items in states that the others never had.
        this.#sent.clear()
      })
    } finally {
      this.#joining--
    }
  }

  leave(stream: Stream): void {
    this.#streams.delete(stream)
    if (this.#streams.size + this.#joining > 0) return
    this.#cancel?.()
    this.#cancel = undefined
    this.#pending.clear()
  }

  /** The place in a quiet moment; undefined while something is on its way to the stream. */
  quietPlace(stream: Stream): Place | undefined {
    const isQuiet = this.#pending.size === 0 && !this.#isSending && this.#streams.has(stream)
    return isQuiet ? this.#placeNow() : undefined
  }

  #placeNow(): Place {
    return { version: this.#parts.syncedVersion(), sequence: this.#sequence }
  }

  #flushAfter(milliseconds: number): void {
    const { clock, inName } = this.#parts
    this.#cancel ??= clock.after(milliseconds, () => {
      this.#cancel = undefined
      inName(this.#accountId, () => void this.#turns.run(() => this.#attempt()))
    })
  }

  async #attempt(): Promise<void> {
    this.#isSending = true
    const { outages } = this.#parts
    const isDone = await outages.attempt(() => this.#flush(), { account_id: this.#accountId }, this.#accountId)
    this.#isSending = false
    if (this.#pending.size > 0 && this.#streams.size > 0)
      this.#flushAfter(isDone ? GAP_MILLISECONDS : RETRY_MILLISECONDS)
  }

  /** Takes what may be sent now. */
  #takeDue(): readonly TouchedItem[] {
    const now = this.#parts.clock.monotonicMilliseconds()
    for (const [key, at] of this.#sentAt) if (at + GAP_MILLISECONDS <= now) this.#sentAt.delete(key)
    const due: TouchedItem[] = []
    for (const [key, touched] of this.#pending) {
      if (this.#sentAt.has(key)) continue
      this.#pending.delete(key)
      this.#sentAt.set(key, now)
      due.push(touched)
    }
    return due
  }

  async #flush(): Promise<void> {
    const due = this.#takeDue()
    // What is sent below is as new as this place, unless something waits.
    const place = this.#pending.size === 0 ? this.#placeNow() : undefined
    if (due.length === 0) return
    const events = due.length > BATCH_MAXIMUM ? undefined : await this.#eventsOf(due).catch(this.#putBack(due))
    if (events === undefined || lengthOf(events) > BATCH_CHARACTERS_MAXIMUM) {
      this.#sent.clear()
      return this.#reset(this.#streams, 'too_many_changes', place ?? this.#placeNow()).catch(this.#putBack(due))
    }
    const fresh = events.filter((event) => this.#isNews(event))
    for (const stream of this.#streams) {
      const changes = changesFor(stream, fresh)
      if (changes.length > 0) stream.push({ changes, ...defined({ place }) })
    }
  }

  /** Whether the streams do not have this state; remembers it. */
  #isNews({ key, json, isLast }: Event): boolean {
    const digest = createHash('sha256').update(json).digest('base64')
    if (this.#sent.get(key) === digest) return false
    this.#sent.delete(key)
    if (isLast) return true
    this.#sent.set(key, digest) // newest last
    const [oldest] = this.#sent.keys()
    if (this.#sent.size > SENT_MAXIMUM && oldest !== undefined) this.#sent.delete(oldest)
    return true
  }

  #putBack(due: readonly TouchedItem[]): (error: unknown) => never {
    return (error) => {
      for (const touched of due) note(this.#pending, touched)
      this.#sentAt.clear()
      throw error
    }
  }

  /** Reads the items, those of a feed together. */
  async #eventsOf(due: readonly TouchedItem[]): Promise<readonly Event[]> {
    const events: Event[] = []
    for (const [type, some] of Map.groupBy(due, (touched) => touched.type)) {
      const ids = some.map(({ id }) => id)
      const items = await this.#parts.feeds.get(type)?.itemsOf(this.#accountId, ids)
      for (const { id, isOwn } of some) {
        const item = items?.get(id)
        if (item !== undefined) events.push(eventOf({ type, id, is: 'set' }, item.toString()))
        else if (items === undefined) events.push(eventOf({ type, id, is: 'changed' }))
        else if (isOwn) events.push(eventOf({ type, id, is: 'removed' }))
      }
    }
    return events
  }

  /** Lists that are read after a reset, at whichever replica, have everything that is not sent after it. */
  async #reset(streams: Iterable<Stream>, reset: ResetReason, place: Place): Promise<void> {
    const { share, log } = this.#parts
    await share(this.#accountId, log.newest(accountNamespace(this.#accountId)))
    for (const stream of streams) stream.push({ reset, changes: [], place })
  }

  async #resume(stream: Stream, from: Place): Promise<void> {
    const { reach, syncedVersion, log, readEntries, feeds } = this.#parts
    await reach(this.#accountId, from.version)
    const place = {
      version: newer(syncedVersion(), from.version),
      sequence: Math.max(this.#sequence, from.sequence),
    }
    const objects = log.since(accountNamespace(this.#accountId), from.version)
    const entries = await readEntries(this.#accountId, from.sequence, BATCH_MAXIMUM + 1)
    if (objects === undefined) return this.#reset([stream], 'cursor_too_old', place)
    const due = new Map<string, TouchedItem>()
    for (const touched of [...objects, ...rowsOf(entries, feeds)]) note(due, touched)
    const isMuch = entries.length > BATCH_MAXIMUM || due.size > BATCH_MAXIMUM
    const events = isMuch ? undefined : await this.#eventsOf([...due.values()])
    if (events === undefined || lengthOf(events) > BATCH_CHARACTERS_MAXIMUM)
      return this.#reset([stream], 'too_many_changes', place)
    stream.push({ changes: changesFor(stream, events), place })
  }
}

const newer = (one: string, other: string): string => (isNewer(other, one) ? other : one)

interface Event {
  readonly key: string
  readonly type: string
  readonly json: string
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
  json: `${JSON.stringify({ type, id, is }).slice(0, -1)},"item":${item}}`,
  isLast: is !== 'set',
})

const lengthOf = (events: readonly Event[]): number => events.reduce((length, { json }) => length + json.length, 0)

const changesFor = ({ accepts }: Stream, events: readonly Event[]): readonly string[] =>
  events.filter(({ type }) => accepts(type)).map(({ json }) => json)

function note(touched: Map<string, TouchedItem>, { type, id, isOwn }: TouchedItem): void {
  const key = `${type} ${id}`
  touched.set(key, { type, id, isOwn: isOwn || touched.get(key)?.isOwn === true })
}

/** The rows that accepted requests have changed. Objects are found by their sources. */
const rowsOf = (entries: readonly AuditEntry[], feeds: ReadonlyMap<string, Feed>): readonly TouchedItem[] =>
  entries.flatMap(({ resource_type: type, resource_id: id, outcome }) =>
    outcome === 'success' && id !== '' && feeds.get(type)?.isAudited !== false ? [{ type, id, isOwn: true }] : [],
  )
