/** The stream of changes without a database and without time: caches, an audit log and items that the test plays. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Place, Stream } from '../../../apiserver/feed/account.ts'
import { BATCH_MAXIMUM } from '../../../apiserver/feed/account.ts'
import { openStreams } from '../../../apiserver/feed/streams.ts'
import { besides, type Feed, sourceOf } from '../../../apiserver/kit/feed.ts'
import type { AuditEntry } from '../../../domain/audit/chain.ts'
import { Cache } from '../../../kit/kube/cache.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { listServers } from '../../../resources/server/index.ts'
import { listSshKeys } from '../../../resources/ssh-key/index.ts'
import { type TimedClock, timedClock } from '../../kit/http/clock.ts'

interface Spec {
  readonly name: string
  readonly shows?: string
}
const typeOf = (kind: string, scope: 'Namespaced' | 'Cluster' = 'Namespaced'): ResourceType<Spec> => ({
  group: 'svccloud.dev',
  version: 'v1',
  kind,
  plural: `${kind.toLowerCase()}s`,
  scope,
})
const object = (kind: string, account: string, name: string, version: number, spec: object = {}): KubeObject<Spec> => ({
  apiVersion: 'svccloud.dev/v1',
  kind,
  metadata: { namespace: accountNamespace(account), name, resourceVersion: String(version) },
  spec: { name: `${name} ${version}`, ...spec },
})

const ADA = '00000000-0000-4000-8000-00000000000a'
const EVE = '00000000-0000-4000-8000-00000000000e'

let clock: TimedClock
let servers: Cache<Spec>
let disks: Cache<Spec>
let plans: Cache<Spec>
/** Of the audit log of ada. */
let entries: AuditEntry[]
let keys: Map<string, string>
let isDatabaseUp: boolean
let reached: string[]
let shared: string[]
/** Happens while a stream reads the audit log. */
let meanwhile: () => void
/** The account in whose name something works. */
const names = new AsyncLocalStorage<string>()
/** Who was read, and in whose name. */
let readFor: [account: string, name: string | undefined][]
/** Accounts whose audit log cannot be read. */
let broken: string[]

beforeEach(() => {
  const fail = (error: unknown) => {
    throw error
  }
  clock = timedClock()
  servers = new Cache(typeOf('Server'), fail)
  disks = new Cache(typeOf('Disk'), fail)
  plans = new Cache(typeOf('Plan', 'Cluster'), fail)
  entries = []
  keys = new Map()
  isDatabaseUp = true
  reached = []
  shared = []
  meanwhile = () => {}
  readFor = []
  broken = []
  for (const cache of [servers, disks, plans]) cache.takeList({ items: [], resourceVersion: '100' })
})

const serversOf = (): Feed => ({
  type: 'server',
  list: listServers,
  isAudited: false,
  sources: [
    sourceOf(
      servers,
      besides(({ metadata: { name } }) => [name]),
      { isOwn: true },
    ),
    sourceOf(
      disks,
      besides(({ spec }) => [spec.shows]),
    ),
    sourceOf(plans, () => 'all', { part: ({ spec }) => spec.shows }),
  ],
  itemsOf: (account, ids) =>
    new Map(
      ids.flatMap((id) => {
        const found = servers.get({ namespace: accountNamespace(account), name: id })
        const plan = plans.list()[0]?.spec.shows
        const shown = {
          id,
          name: found?.spec.name,
          disks: disks.list().flatMap(({ spec }) => (spec.shows === id ? [true] : [])),
          plan,
        }
        return found === undefined ? [] : [[id, Buffer.from(JSON.stringify(shown))]]
      }),
    ),
  idsOf: (account) => servers.inNamespace(accountNamespace(account)).map(({ metadata }) => metadata.name),
})
const keysOf = (): Feed => ({
  type: 'ssh_key',
  list: listSshKeys,
  isAudited: true,
  sources: [],
  async itemsOf(_account, ids) {
    if (!isDatabaseUp) throw new Error('no database')
    return new Map(
      ids.flatMap((id) => {
        const name = keys.get(id)
        return name === undefined ? [] : [[id, Buffer.from(JSON.stringify({ id, name }))]]
      }),
    )
  },
})

/** One process of the API. */
const replica = () =>
  openStreams({
    feeds: [serversOf(), keysOf()],
    clock,
    log: silentLog,
    ready: Promise.resolve(),
    readSequences: async (accounts) => {
      if (accounts.length > 1) readFor.push(['all', names.getStore()])
      return new Map(accounts.map((account) => [account, entries.length]))
    },
    readEntries: async (account, after, limit) => {
      meanwhile()
      readFor.push([account, names.getStore()])
      if (broken.includes(account)) throw new Error('cannot be read')
      return account === ADA ? entries.slice(after, after + limit) : []
    },
    reach: async (account, version) => void reached.push(`${account} ${version}`),
    share: async (account, version) => {
      if (!isDatabaseUp) throw new Error('no database')
      shared.push(`${account} ${version}`)
    },
    forAccount: (account, work) => names.run(account, work),
  })
type Replica = ReturnType<typeof replica>

interface Got {
  readonly event: string
  readonly data: Record<string, any> // as the stream has it
}

async function connect(
  streams: Replica,
  {
    account = ADA,
    holder = 'session',
    from = 'start' as Place | 'start' | 'unknown',
    accepts = (_type: string): boolean => true,
  } = {},
) {
  let got: Got[] = []
  let place: Place | undefined
  const entry = streams.enter(account, holder)
  const stream: Stream = {
    accepts,
    push: (news) => {
      if (news.reset !== undefined) got.push({ event: 'reset', data: { reason: news.reset } })
      for (const change of news.changes) got.push({ event: 'change', data: JSON.parse(change) as Got['data'] })
      place = news.place ?? place
    },
  }
  const joined = entry.join(stream, from)
  return {
    joined,
    place: () => place,
    quiet: () => entry.quietPlace(stream),
    leave: () => entry.leave(stream),
    /** What came since the last call. */
    take(): Got[] {
      const taken = got
      got = []
      return taken
    },
  }
}
const put = (account: string, name: string, version: number, spec?: object) =>
  servers.takeEvent({ type: 'MODIFIED', object: object('Server', account, name, version, spec) })
const drop = (account: string, name: string, version: number) =>
  servers.takeEvent({ type: 'DELETED', object: object('Server', account, name, version) })
/** The other kinds have nothing new up to then. */
const quietUntil = (version: number) => {
  for (const cache of [servers, disks, plans]) cache.takeEvent({ type: 'BOOKMARK', resourceVersion: String(version) })
}
const audited = (type: string, id: string, outcome = 'success') =>
  entries.push({
    sequence: entries.length + 1,
    resource_type: type,
    resource_id: id,
    outcome,
  } as AuditEntry) // what the stream reads of it
const said = (got: readonly Got[]) => got.map(({ data }) => [data['type'], data['id'], data['is']])

describe('a stream', () => {
  test('begins with a reset, then has each change as lists show it, and its removal', async () => {
    const ada = await connect(replica())
    await ada.joined
    expect(ada.take()).toEqual([{ event: 'reset', data: { reason: 'start' } }])
    put(ADA, 'web', 101)
    await clock.pass(50)
    expect(ada.take()).toEqual([
      {
        event: 'change',
        data: { type: 'server', id: 'web', is: 'set', item: { id: 'web', name: 'web 101', disks: [] } },
      },
    ])
    drop(ADA, 'web', 102)
    await clock.pass(1_000)
    expect(ada.take()).toEqual([{ event: 'change', data: { type: 'server', id: 'web', is: 'removed', item: null } }])
  })

  test('has nothing of another account', async () => {
    const streams = replica()
    const [ada, eve] = [await connect(streams), await connect(streams, { account: EVE, holder: 'other' })]
    await Promise.all([ada.joined, eve.joined])
    eve.take()
    put(ADA, 'web', 101)
    audited('ssh_key', 'k1')
    await clock.pass(2_000)
    expect(eve.take()).toEqual([])
    expect(ada.take().length).toBeGreaterThan(1)
  })

  test('has the first and the newest state of an item that changes all the time, four times a second', async () => {
    const ada = await connect(replica())
    await ada.joined
    ada.take()
    for (let step = 1; step <= 100; step++) {
      put(ADA, 'web', 100 + step)
      await clock.pass(10)
    }
    await clock.pass(1_000)
    const names = ada.take().map(({ data }) => data['item'].name)
    expect([names.length, names.at(-1)]).toEqual([5, 'web 200'])
  })

  test('has an item whose own object is as before, when something that it shows has changed', async () => {
    const ada = await connect(replica())
    await ada.joined
    put(ADA, 'web', 101)
    await clock.pass(1_000)
    ada.take()
    disks.takeEvent({ type: 'ADDED', object: object('Disk', ADA, 'd', 102, { shows: 'web' }) })
    await clock.pass(1_000)
    expect(ada.take()).toMatchObject([{ data: { id: 'web', is: 'set', item: { disks: [true] } } }])
    plans.takeEvent({ type: 'ADDED', object: object('Plan', '', 'p', 103, { shows: 'large' }) })
    await clock.pass(1_000)
    expect(ada.take()).toMatchObject([{ data: { id: 'web', is: 'set', item: { plan: 'large' } } }])
    // what is shown of it is as before
    plans.takeEvent({ type: 'MODIFIED', object: object('Plan', '', 'p', 104, { shows: 'large' }) })
    disks.takeEvent({ type: 'MODIFIED', object: object('Disk', ADA, 'd', 105, { shows: 'web' }) })
    await clock.pass(1_000)
    expect(ada.take()).toEqual([])
    // an object that shows in none is no removal
    disks.takeEvent({ type: 'ADDED', object: object('Disk', ADA, 'e', 106, { shows: 'unknown' }) })
    await clock.pass(1_000)
    expect(ada.take()).toEqual([])
  })

  test('finds rows by the audit log: new ones, deleted ones, and those whose items it does not have', async () => {
    const ada = await connect(replica())
    await ada.joined
    ada.take()
    keys.set('k1', 'laptop')
    audited('ssh_key', 'k1')
    audited('ssh_key', 'k2')
    audited('ssh_key', 'k3', 'denied')
    audited('member', 'm1')
    audited('server', 'web')
    await clock.pass(600)
    expect(ada.take().map(({ data }) => data)).toEqual([
      { type: 'ssh_key', id: 'k1', is: 'set', item: { id: 'k1', name: 'laptop' } },
      { type: 'ssh_key', id: 'k2', is: 'removed', item: null },
      { type: 'member', id: 'm1', is: 'changed', item: null },
    ])
  })

  test('has the newest state of an item that another stream never had in between', async () => {
    const streams = replica()
    const first = await connect(streams)
    await first.joined
    put(ADA, 'web', 101, { name: 'before' })
    quietUntil(101)
    await clock.pass(1_000)
    put(ADA, 'web', 102, { name: 'between' })
    const second = await connect(streams, { from: { version: '101', sequence: 0 } })
    await second.joined
    put(ADA, 'web', 103, { name: 'before' })
    await clock.pass(1_000)
    expect(second.take().map(({ data }) => data['item'].name)).toEqual(['between', 'before'])
  })

  test('has only what its caller may list', async () => {
    const ada = await connect(replica(), { accepts: (type) => type !== 'server' })
    await ada.joined
    put(ADA, 'web', 101)
    keys.set('k1', 'laptop')
    audited('ssh_key', 'k1')
    await clock.pass(1_000)
    expect(said(ada.take().slice(1))).toEqual([['ssh_key', 'k1', 'set']])
  })

  test('loses nothing while the database is away', async () => {
    const ada = await connect(replica())
    await ada.joined
    ada.take()
    isDatabaseUp = false
    keys.set('k1', 'laptop')
    audited('ssh_key', 'k1')
    await clock.pass(5_000)
    expect([ada.take(), ada.quiet()]).toEqual([[], undefined])
    isDatabaseUp = true
    await clock.pass(5_000)
    expect(said(ada.take())).toEqual([['ssh_key', 'k1', 'set']])
    expect(ada.quiet()).toEqual({ version: '100', sequence: 1 })
  })

  test('works in the name of its account, whoever connected first', async () => {
    const streams = replica()
    const ada = await names.run(ADA, () => connect(streams))
    const eve = await names.run(EVE, () => connect(streams, { account: EVE, holder: 'other' }))
    await Promise.all([ada.joined, eve.joined])
    audited('ssh_key', 'k1')
    await clock.pass(2_000)
    expect(new Set(readFor.map((pair) => pair.join(' ')))).toEqual(new Set(['all ', `${ADA} ${ADA}`, `${EVE} ${EVE}`]))
  })

  test('does not wait for an account whose audit log cannot be read', async () => {
    const streams = replica()
    broken = [EVE]
    const eve = await connect(streams, { account: EVE, holder: 'other' })
    const ada = await connect(streams)
    await Promise.all([ada.joined, eve.joined])
    ada.take()
    keys.set('k1', 'laptop')
    audited('ssh_key', 'k1')
    await clock.pass(1_000)
    expect(said(ada.take())).toEqual([['ssh_key', 'k1', 'set']])
  })

  test('gets a reset for more changes than are worth sending', async () => {
    const ada = await connect(replica())
    await ada.joined
    ada.take()
    for (let step = 1; step <= BATCH_MAXIMUM + 1; step++) put(ADA, `s${step}`, 100 + step)
    isDatabaseUp = false
    await clock.pass(1_000)
    expect(ada.take()).toEqual([])
    isDatabaseUp = true
    await clock.pass(2_000)
    expect(ada.take()).toEqual([{ event: 'reset', data: { reason: 'too_many_changes' } }])
  })
})

describe('a cursor', () => {
  test('brings what changed since, and what was deleted, once', async () => {
    const streams = replica()
    const first = await connect(streams)
    await first.joined
    put(ADA, 'web', 101)
    put(ADA, 'old', 102)
    quietUntil(103)
    await clock.pass(1_000)
    first.leave()
    const from = { version: '103', sequence: 0 }
    put(ADA, 'web', 104)
    put(EVE, 'foreign', 105)
    drop(ADA, 'old', 106)
    keys.set('k1', 'laptop')
    audited('ssh_key', 'k1')
    const second = await connect(streams, { from })
    await second.joined
    expect(said(second.take())).toEqual([
      ['server', 'web', 'set'],
      ['server', 'old', 'removed'],
      ['ssh_key', 'k1', 'set'],
    ])
    quietUntil(110)
    await clock.pass(1_000)
    expect(second.quiet()).toEqual({ version: '110', sequence: 1 })
    const third = await connect(streams, { from: { version: '110', sequence: 1 } })
    await third.joined
    expect(third.take()).toEqual([])
    expect(reached).toEqual([`${ADA} 103`, `${ADA} 110`])
  })

  test('works at another replica that knows that moment, and not at one that started later', async () => {
    const [one, other] = [replica(), replica()]
    await clock.pass(0)
    const ada = await connect(one)
    await ada.joined
    quietUntil(110)
    const from = { version: '110', sequence: 0 }
    put(ADA, 'web', 111)
    quietUntil(112)
    const restarted = replica()
    await clock.pass(0)
    const resumed = await connect(other, { from })
    await resumed.joined
    expect(said(resumed.take())).toEqual([['server', 'web', 'set']])
    const lost = await connect(restarted, { from })
    await lost.joined
    expect(lost.take()).toEqual([{ event: 'reset', data: { reason: 'cursor_too_old' } }])
    expect(lost.place()).toEqual({ version: '112', sequence: 0 })
  })

  test('that gets a reset brings the lists of all replicas up to what is not sent again', async () => {
    const streams = replica()
    await clock.pass(0)
    put(ADA, 'web', 105)
    put(EVE, 'foreign', 108)
    for (const from of ['start', 'unknown', { version: '99', sequence: 0 }] as const)
      await (await connect(streams, { from })).joined
    expect(shared).toEqual([`${ADA} 105`, `${ADA} 105`, `${ADA} 105`])
  })

  test('that nobody knows is answered by a reset', async () => {
    const ada = await connect(replica(), { from: 'unknown' })
    await ada.joined
    expect(ada.take()).toEqual([{ event: 'reset', data: { reason: 'cursor_unknown' } }])
  })

  test('never says more than was sent', async () => {
    const ada = await connect(replica())
    await ada.joined
    put(ADA, 'web', 101)
    quietUntil(101)
    await clock.pass(50)
    expect(ada.place()).toEqual({ version: '101', sequence: 0 })
    put(ADA, 'web', 102)
    put(ADA, 'db', 103)
    quietUntil(103)
    expect(ada.quiet()).toBeUndefined()
    await clock.pass(50)
    // web waits for its turn
    expect(ada.take().at(-1)?.data['id']).toBe('db')
    expect(ada.place()).toEqual({ version: '101', sequence: 0 })
    await clock.pass(1_000)
    expect(ada.place()).toEqual({ version: '103', sequence: 0 })
  })

  test('misses nothing that happens while it is resumed', async () => {
    const streams = replica()
    await clock.pass(0)
    quietUntil(110)
    keys.set('k1', 'laptop')
    audited('ssh_key', 'k1')
    meanwhile = () => {
      meanwhile = () => {}
      put(ADA, 'during', 111)
    }
    const ada = await connect(streams, { from: { version: '110', sequence: 0 } })
    await ada.joined
    put(ADA, 'after', 112)
    await clock.pass(1_000)
    expect(ada.take().map(({ data }) => data['id'])).toEqual(['k1', 'during', 'after'])
  })
})

test('four streams of a session, fifty of an account; those that have left do not count', async () => {
  const streams = replica()
  const four = await Promise.all([1, 2, 3, 4].map(() => connect(streams)))
  await expect(connect(streams)).rejects.toMatchObject({ status: 429 })
  four[0]?.leave()
  four[0]?.leave()
  await connect(streams)
  await expect(connect(streams)).rejects.toMatchObject({ status: 429 })
  for (let other = 0; other < 46; other++) await connect(streams, { holder: `other ${other}` })
  await expect(connect(streams, { holder: 'one more' })).rejects.toMatchObject({ status: 429 })
  await connect(streams, { account: EVE, holder: 'hers' })
})

test('a process has so many streams, and says that another may have fewer', async () => {
  const streams = replica()
  for (let account = 0; account < 40; account++)
    for (let holder = 0; holder < 50; holder++) streams.enter(`account ${account}`, `h${holder}`)
  expect(() => streams.enter('one more', 'holder')).toThrow(
    expect.objectContaining({ status: 503, members: { retryAfterSeconds: 10 } }),
  )
})
