/** The streams of all accounts in this process: one subscription of each source, whose touches are noted in the log and
 *  passed to the account that they belong to. Rows are found by the audit log, where every accepted change has exactly
 *  one entry, whichever replica made it. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { AuditEntry } from '../../domain/audit/chain.ts'
import { fullForNow, rateLimited } from '../../domain/problem.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { Outages } from '../../kit/sys/outages.ts'
import { isNewer } from '../../kit/kube/cache.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import type { Feed, Touch } from '../kit/feed.ts'
import { AccountStreams, type Place, type Stream } from './account.ts'
import { createTouchLog, type TouchLog } from './log.ts'

export interface StreamsParts {
  readonly feeds: readonly Feed[]
  readonly clock: Clock
  readonly log: Logger
  /** Resolves when every source is known. */
  readonly ready: Promise<void>
  /** The number of audit entries of each of these accounts. */
  readonly readSequences: (accountIds: readonly string[]) => Promise<ReadonlyMap<string, number>>
  readonly readEntries: (accountId: string, after: number, limit: number) => Promise<readonly AuditEntry[]>
  /** Brings the caches up to what another replica has sent. */
  readonly reach: (accountId: string, version: string) => Promise<void>
  /** Brings the lists of all replicas up to the version. */
  readonly share: (accountId: string, version: string) => Promise<void>
  /** Does the work in the name of the account. */
  readonly forAccount: <Result>(accountId: string, work: () => Result) => Result
}

export interface Streams {
  /** Counts the stream from now on, until `leave`. Throws 429 when the holder (a session or a token) or the account has
   *  too many, and 503 when this process has. */
  enter(accountId: string, holder: string): Entry
  /** Of all accounts. */
  count(): number
}

export interface Entry {
  join(stream: Stream, from: Place | 'start' | 'unknown'): Promise<void>
  quietPlace(stream: Stream): Place | undefined
  leave(stream: Stream): void
}

const LOOK_MILLISECONDS = 500
const HOLDER_MAXIMUM = 4
const ACCOUNT_MAXIMUM = 50
const PROCESS_MAXIMUM = 2_000
const RETRY_SECONDS = 10
const TOO_MANY = 'Too many streams of changes are open.'
const LOG = { namespaceMaximum: 1_000, maximum: 50_000 }

/** Those with streams. */
type Accounts = Map<string, { readonly streams: AccountStreams; readonly holders: Map<string, number> }>

/** Follows the feeds from now on. */
export function openStreams({
  feeds,
  clock,
  log,
  ready,
  readSequences,
  forAccount,
  ...options
}: StreamsParts): Streams {
  // What goes on for all must not count as the work of the request that started it, nor be in its trace.
  const outside = AsyncLocalStorage.snapshot()
  const touches = createTouchLog(LOG)
  const accounts: Accounts = new Map()
  const sources = feeds.flatMap((feed) => feed.sources)
  const outages = new Outages({ log, clock }, 'changes were not sent')

  const parts = {
    clock,
    log: touches,
    outages,
    feeds: new Map(feeds.map((feed) => [feed.type, feed])),
    syncedVersion: () => oldestVersion(sources.map((source) => source.syncedVersion())),
    readSequence: async (accountId: string) => (await readSequences([accountId])).get(accountId) ?? 0,
    inName: <Result>(accountId: string, work: () => Result) => outside(() => forAccount(accountId, work)),
    ...options,
  }

  followAll(feeds, touches, accounts)
  // What was deleted before the first lists is not known.
  void ready.then(() => {
    for (const source of sources) touches.raise(source.syncedVersion())
  })

  const advance = async ([accountId, sequence]: readonly [string, number]) => {
    const streams = accounts.get(accountId)?.streams
    if (streams !== undefined)
      await outages.attempt(
        () => parts.inName(accountId, () => streams.advance(sequence)),
        { account_id: accountId },
        `audit ${accountId}`,
      )
  }
  const lookLater = whileWanted(
    clock,
    () => accounts.size > 0,
    () =>
      outages.attempt(
        async () => Promise.all([...(await readSequences([...accounts.keys()]))].map(advance)),
        {},
        'audit',
      ),
  )

  const count = () => [...accounts.values()].reduce((sum, { holders }) => sum + totalOf(holders), 0)
  return {
    count,
    enter(accountId, holder) {
      const account = accounts.get(accountId) ?? {
        streams: new AccountStreams(parts, accountId),
        holders: new Map<string, number>(),
      }
      requireRoom(account.holders, holder, count())
      accounts.set(accountId, account)
      account.holders.set(holder, (account.holders.get(holder) ?? 0) + 1)
      outside(lookLater)
      return entryOf(account.streams, () => {
        const left = (account.holders.get(holder) ?? 1) - 1
        if (left > 0) account.holders.set(holder, left)
        else account.holders.delete(holder)
        if (account.holders.size === 0) accounts.delete(accountId)
      })
    },
  }
}

/** Notes what the sources touch, and passes it to the account that it belongs to. */
function followAll(feeds: readonly Feed[], touches: TouchLog, accounts: Accounts): void {
  const take = (feed: Feed, isOwn: boolean, { keys, version }: Touch): void => {
    const { type } = feed
    if (keys === 'all') {
      touches.raise(version)
      for (const { streams } of accounts.values()) streams.touchAll(feed)
      return
    }
    for (const { namespace, id } of keys) {
      touches.note(namespace, { type, id, isOwn }, version)
      accounts.get(accountOfNamespace(namespace) ?? '')?.streams.touch({ type, id, isOwn })
    }
  }
  for (const feed of feeds) for (const source of feed.sources) source.follow((touch) => take(feed, source.isOwn, touch))
}

const totalOf = (holders: ReadonlyMap<string, number>): number =>
  [...holders.values()].reduce((sum, count) => sum + count, 0)

/** Throws what `enter` throws. */
function requireRoom(holders: ReadonlyMap<string, number>, holder: string, total: number): void {
  if ((holders.get(holder) ?? 0) >= HOLDER_MAXIMUM || totalOf(holders) >= ACCOUNT_MAXIMUM)
    throw rateLimited(RETRY_SECONDS, TOO_MANY)
  if (total >= PROCESS_MAXIMUM) throw fullForNow(RETRY_SECONDS, TOO_MANY)
}

/** `onLeft` is called once. */
function entryOf(streams: AccountStreams, onLeft: () => void): Entry {
  let hasLeft = false
  return {
    join: async (stream, from) => {
      await streams.join(stream, from)
      if (hasLeft) streams.leave(stream)
    },
    quietPlace: (stream) => streams.quietPlace(stream),
    leave(stream) {
      if (hasLeft) return
      hasLeft = true
      streams.leave(stream)
      onLeft()
    },
  }
}

const oldestVersion = ([first = '', ...others]: readonly string[]): string =>
  others.reduce((oldest, version) => (isNewer(oldest, version) ? version : oldest), first)

/** Repeats the work while somebody wants it; the returned function starts that, once. */
function whileWanted(clock: Clock, isWanted: () => boolean, work: () => Promise<unknown>): () => void {
  let isStarted = false
  const later = (): void => {
    if (isStarted) return
    isStarted = true
    clock.after(LOOK_MILLISECONDS, () => {
      void (isWanted() ? work() : Promise.resolve()).then(() => {
        isStarted = false
        if (isWanted()) later()
      })
    })
  }
  return later
}
