/** Sending events, with a real receiver and a real database; the time is moved by hand. */
import type { ServerResponse } from 'node:http'
import { sql, type Transaction } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openDeliveries } from '../../../../controllers/nouns/webhook/deliver.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { begin } from '../../../../db/kit/begin.ts'
import type { Tables } from '../../../../db/tables.ts'
import {
  addEventFor,
  addEvents,
  addWebhook,
  changeWebhook,
  claimDeliveries,
  countDeliveries,
  countPending,
  findDelivery,
  findWebhook,
  listDeliveries,
  listStates,
  lockEvents,
  noteStates,
  pruneDeliveries,
  queueAgain,
  readSecrets,
  recordAttempt,
  removeWebhook,
  rotateSecret,
} from '../../../../db/webhook/index.ts'
import {
  ACCOUNT_DELIVERIES_AT_ONCE_MAXIMUM,
  LOG_DELIVERIES_MAXIMUM,
  PENDING_MAXIMUM,
  RETRY_SECONDS,
  TEST_EVENT,
} from '../../../../domain/webhook/rules.ts'
import { secretText } from '../../../../domain/webhook/signature.ts'
import { type Clock, systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import { createSealing } from '../../../../kit/sys/sealing.ts'
import { createAccount, giveStanding } from '../../../accounts.ts'
import { lockWaits } from '../../../lock-waits.ts'
import { useDatabase } from '../../../database.ts'
import { isVerified, type Received, type Receiver, startReceiver } from './receiver.ts'

const DAY = 86_400_000
const SECRETS = [1, 2].map((byte) => secretText(Buffer.alloc(32, byte))) as [string, string]
const sealing = createSealing([{ id: 'k1', key: Buffer.alloc(32, 7) }], random)
const database = useDatabase()
let receiver: Receiver
let answers: Record<string, (request: Received, response: ServerResponse) => void>
let now: Date
/** Ends the patience of everybody who waits for an answer. */
const waiting = new Set<() => void>()
const lose = () => [...waiting].forEach((work) => work())
/** Time passes only by hand. */
const clock: Clock = {
  ...systemClock,
  now: () => now,
  after(_milliseconds, work) {
    waiting.add(work)
    return () => waiting.delete(work)
  },
}
const pass = (milliseconds: number) => void (now = new Date(now.getTime() + milliseconds))

beforeAll(async () => {
  receiver = await startReceiver((request, response) => {
    const answer = answers[request.path]
    if (answer === undefined) response.end()
    else answer(request, response)
  })
})
afterAll(() => receiver.close())

let accountId: string
beforeEach(async () => {
  // What the tests before have left waits for nobody.
  await database.db.deleteFrom('webhook').execute()
  answers = {}
  receiver.received.splice(0)
  receiver.answerNames('127.0.0.1')
  now = new Date('2026-03-01T12:00:00Z')
  accountId = await createAccount(database.db)
})

const of = (webhookId = 'hook') => ({ accountId, webhookId })
/** Without a secret. */
const addRow = async (webhookId = 'hook', fields: { url?: string; events?: string[] } = {}) => {
  await database.db.transaction().execute((tx) =>
    addWebhook(tx, of(webhookId), {
      name: webhookId,
      url: receiver.url(),
      events: ['*'],
      enabled: true,
      createdAt: now,
      ...fields,
    }),
  )
}
const rotate = (secret: string, webhookId = 'hook', by = sealing) =>
  database.db.transaction().execute((tx) => rotateSecret(tx, by, of(webhookId), { secret, now }))
const add = async (webhookId = 'hook', fields: { url?: string; events?: string[] } = {}) => {
  await addRow(webhookId, fields)
  await rotate(SECRETS[0], webhookId)
}
const change = (fields: { url?: string; events?: string[]; enabled?: boolean }) =>
  database.db
    .transaction()
    .execute((tx) =>
      changeWebhook(tx, of(), { name: 'hook', url: receiver.url(), events: ['*'], enabled: true, ...fields }),
    )
const isFailing = async () => (await findWebhook(database.db, of()))?.failingSince !== null
const happen = (...events: readonly (readonly [id: string, resource?: string])[]) =>
  database.db.transaction().execute(async (tx) => {
    await lockEvents(tx, accountId)
    const made = events.map(([id, resource]) => ({
      id,
      type: 'server.changed',
      resource: resource === undefined ? undefined : { type: 'server', id: resource },
      body: JSON.stringify({ id, type: 'server.changed' }),
    }))
    await addEvents(tx, accountId, made, now)
  })
/** A process that sends what is due, once, and waits for what came of it. */
const round = async (signal = new AbortController().signal, by = sealing) => {
  const deliveries = openDeliveries({ db: database.db, clock, log, random, sealing: by, trust: receiver.trust }, signal)
  const started = await deliveries.start()
  await deliveries.settled()
  return started
}
const rounds = async () => {
  while ((await round()) > 0);
}
const found = (eventId: string, webhookId = 'hook') => findDelivery(database.db, of(webhookId), eventId)
const ids = () => receiver.received.map(({ id }) => id)

describe('an event', () => {
  test('is sent once, signed, with its id', async () => {
    await add()
    await happen(['a'])
    await rounds()
    expect(ids()).toEqual(['a'])
    const [request] = receiver.received as [Received]
    expect(request.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': 'a',
      'webhook-timestamp': String(now.getTime() / 1_000),
    })
    expect([isVerified(request, SECRETS[0]), isVerified(request, SECRETS[1])]).toEqual([true, false])
    expect(await found('a')).toMatchObject({ state: 'delivered', attempts: 1, responseStatus: 200, error: null })
  })

  test('is stored once for all webhooks that select it, and for no other', async () => {
    await add('one', { events: ['server.*'] })
    await add('two', { events: ['*.changed'] })
    await add('three', { events: ['storage.*'] })
    await happen(['a'])
    await happen(['a'])
    await rounds()
    expect(ids()).toEqual(['a', 'a'])
    expect(await found('a', 'three')).toBeUndefined()
  })

  test('is signed with both secrets for a day after a rotation, then with the new one only', async () => {
    await add()
    const until = await rotate(SECRETS[1])
    expect(until).toEqual(new Date(now.getTime() + DAY))
    const verified = () => receiver.received.map((one) => SECRETS.map((secret) => isVerified(one, secret)))
    await happen(['a'])
    await rounds()
    pass(DAY - 1)
    await happen(['b'])
    await rounds()
    pass(1)
    await happen(['c'])
    await rounds()
    expect(verified()).toEqual([
      [true, true],
      [true, true],
      [false, true],
    ])
  })
})

test('events and states of more rows than a statement has parameters for are stored', async () => {
  await add()
  const count = 17_000
  await happen(...Array.from({ length: count }, (_, index) => [`e${index}`] as const))
  expect((await countPending(database.db, accountId)).get('hook')).toBe(PENDING_MAXIMUM)
  const states = await database.db.transaction().execute(async (tx) => {
    const set = Array.from({ length: count }, (_, index) => ({ type: 'server', id: `s${index}`, state: 'started' }))
    await noteStates(tx, accountId, { set, deletions: [], isFirst: true })
    return await listStates(tx, accountId)
  })
  expect(states).toHaveLength(count)
})

test('a sealed secret opens for its own webhook only', async () => {
  await add('one')
  await add('two')
  const one = await database.db
    .selectFrom('webhook')
    .select('sealed_secret')
    .where('id', '=', 'one')
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  expect(await readSecrets(database.db, sealing, of('one'), now)).toEqual([SECRETS[0]])
  await database.db
    .updateTable('webhook')
    .set({ sealed_secret: one?.sealed_secret ?? null })
    .where('id', '=', 'two')
    .where('account_id', '=', accountId)
    .execute()
  expect(await readSecrets(database.db, sealing, of('two'), now)).toBeUndefined()
})

describe('a secret', () => {
  const others = createSealing([{ id: 'k2', key: Buffer.alloc(32, 8) }], random)

  test('that was lost or never made is not invented: what waits is sent when there is one', async () => {
    await addRow()
    await happen(['a'])
    expect(await round()).toBe(0)
    expect(await findWebhook(database.db, of())).toMatchObject({ hasSecret: false, failingSince: null })
    expect(await rotate(SECRETS[0])).toBeNull()
    await rounds()
    expect(receiver.received.map((request) => isVerified(request, SECRETS[0]))).toEqual([true])
  })

  test('that cannot be opened is a failed attempt with a reason, which a rotation ends', async () => {
    await add()
    await happen(['a'])
    await round(undefined, others)
    const error = 'the platform cannot open the secret of the webhook: rotate it'
    expect(await found('a')).toMatchObject({ state: 'pending', attempts: 1, responseStatus: null, error })
    expect(await isFailing()).toBe(true)
    expect(await rotate(SECRETS[1], 'hook', others)).toBeNull()
    pass(6_000)
    await round(undefined, others)
    expect(receiver.received.map((request) => isVerified(request, SECRETS[1]))).toEqual([true])
  })

  test('that was replaced and cannot be opened stops nothing', async () => {
    await add()
    await rotate(SECRETS[1])
    await database.db
      .updateTable('webhook')
      .set({ sealed_previous_secret: others.seal(SECRETS[0], 'webhook') })
      .where('account_id', '=', accountId)
      .execute()
    await happen(['a'])
    await rounds()
    expect(receiver.received.map((one) => SECRETS.map((secret) => isVerified(one, secret)))).toEqual([[false, true]])
  })
})

describe('what waits', () => {
  beforeEach(() => {
    answers['/'] = (_request, response) => response.writeHead(500).end()
  })

  test('is sent to a new address at once, and anew', async () => {
    await add()
    await happen(['a'])
    await rounds()
    await change({ url: receiver.url('/new') })
    await rounds()
    expect(receiver.received.map(({ id, path }) => [id, path])).toEqual([
      ['a', '/'],
      ['a', '/new'],
    ])
    expect(await found('a')).toMatchObject({ state: 'delivered', attempts: 2 })
  })

  test('and is no longer selected is ended, also when it was sent again by hand; a test event is not', async () => {
    await add()
    await happen(['a', 'r'], ['b', 'r'])
    await rounds()
    await change({ events: ['storage.*'] })
    await change({ events: ['storage.*'], url: receiver.url('/new') })
    await database.db.transaction().execute((tx) => queueAgain(tx, of(), 'a', now))
    const body = '{"id":"test"}'
    await database.db.transaction().execute((tx) => addEventFor(tx, of(), { id: 'test', type: TEST_EVENT, body }, now))
    await rounds()
    expect(receiver.received.map(({ id, path }) => [id, path])).toEqual([
      ['a', '/'],
      ['test', '/new'],
    ])
    const ended = { state: 'failed', nextAttemptAt: null, error: 'the webhook no longer selects this event' }
    expect(await found('a')).toMatchObject({ ...ended, attempts: 1 })
    expect(await found('b')).toMatchObject({ ...ended, attempts: 0 })
  })
})

test('places are shared: no account takes all of them, and one that has none comes first', async () => {
  const webhooks = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const webhookId of webhooks) await add(webhookId)
  await happen(...Array.from({ length: 30 }, (_, index) => [`e${index}`, `r${index % 20}`] as const))
  const greedy = accountId
  accountId = await createAccount(database.db)
  await add()
  pass(1_000)
  await happen(['late'])
  const claim = async (limit: number) => {
    const due = await claimDeliveries(database.db, { now, leasedUntil: new Date(now.getTime() + 60_000), limit })
    return due.filter((one) => [greedy, accountId].includes(one.accountId))
  }
  const first = await claim(2)
  expect(new Set(first.map((one) => one.accountId))).toEqual(new Set([greedy, accountId]))
  const rest = await claim(1_000)
  expect(rest).toHaveLength(ACCOUNT_DELIVERIES_AT_ONCE_MAXIMUM - 1)
  // Those of an account are for all of its webhooks.
  const own = [...first, ...rest].filter((one) => one.accountId === greedy)
  expect(new Set(own.map(({ webhookId }) => webhookId))).toEqual(new Set(webhooks))
  expect(await claim(1_000)).toEqual([])
})

describe('a receiver that fails', () => {
  test.each([
    ['answers 500', (_request: Received, response) => response.writeHead(500).end(), 500, 'the receiver answered 500'],
    [
      'redirects',
      (_request, response) => response.writeHead(302, { location: receiver.url('/elsewhere') }).end(),
      302,
      'the receiver answered 302',
    ],
    [
      'switches protocols',
      (_request, response) => response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).flushHeaders(),
      101,
      'the receiver answered 101',
    ],
    ['never answers', lose, null, 'no answer within 15 seconds'],
    ['hangs up', (_request, response) => response.destroy(), null, 'socket hang up'],
  ] as const satisfies readonly (readonly [string, (typeof answers)[string], number | null, string])[])(
    '%s: the same event is attempted again',
    async (_what, answer, status, error) => {
      await add()
      answers['/'] = answer
      await happen(['a'])
      await rounds()
      expect(await found('a')).toMatchObject({ state: 'pending', attempts: 1, responseStatus: status, error })
      delete answers['/']
      pass(4_000)
      expect(await round()).toBe(0)
      pass(2_000)
      await rounds()
      expect(ids()).toEqual(['a', 'a'])
      expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
      expect(receiver.received.map(({ path }) => path)).toEqual(['/', '/'])
      expect(await found('a')).toMatchObject({ state: 'delivered', attempts: 2 })
    },
  )

  test('is given up after three days and paused; the owners get a mail, the log an entry', async () => {
    await giveStanding(database.db, accountId)
    await add()
    answers['/'] = (_request, response) => response.writeHead(500).end()
    await happen(['a'])
    const began = now.getTime()
    for (const seconds of [...RETRY_SECONDS, 0]) {
      await rounds()
      pass(seconds * 1_060)
    }
    expect(receiver.received).toHaveLength(RETRY_SECONDS.length + 1)
    expect(now.getTime() - began).toBeGreaterThan(3 * DAY)
    expect(await found('a')).toMatchObject({ state: 'failed', nextAttemptAt: null, responseStatus: 500 })
    expect(await findWebhook(database.db, of())).toMatchObject({
      pausedAt: expect.any(Date),
      pauseReason: 'Every delivery has failed for three days.',
    })
    const mails = await database.db.selectFrom('email_outbox').select('subject').execute()
    expect(mails.map(({ subject }) => subject)).toEqual(['A webhook of your account was paused'])
    const [entry] = await listAudit(database.db, accountId, { limit: 1 })
    expect(entry).toMatchObject({ action: 'webhook.paused', resource_id: 'hook', actor_email: 'system:webhooks' })

    await happen(['b'])
    expect(await found('b')).toBeUndefined()
    const fields = { name: 'hook', url: receiver.url('/new'), events: ['*'], enabled: true }
    await database.db.transaction().execute((tx) => changeWebhook(tx, of(), fields))
    await happen(['c'])
    await rounds()
    expect(receiver.received.at(-1)).toMatchObject({ id: 'c', path: '/new' })
  })

  test('is not paused for a single failure long after a delivery that was given up', async () => {
    await add()
    answers['/'] = (_request, response) => response.writeHead(500).end()
    await happen(['a'])
    for (let attempt = 0; attempt < RETRY_SECONDS.length; attempt += 1) {
      await rounds()
      expect(await isFailing()).toBe(true)
      // Whichever delivery is given up first, the webhook was not failing for three days.
      await database.db.updateTable('webhook').set({ failing_since: now }).where('account_id', '=', accountId).execute()
      pass(86_400_000 * 1.1)
    }
    await rounds()
    expect([(await found('a'))?.state, await isFailing()]).toEqual(['failed', false])
    pass(30 * DAY)
    await happen(['b'])
    await rounds()
    expect(await findWebhook(database.db, of())).toMatchObject({ failingSince: now, pausedAt: null })
  })

  test('that answers 410 is paused at once', async () => {
    await add()
    answers['/'] = (_request, response) => response.writeHead(410).end()
    await happen(['a'])
    await rounds()
    expect(await findWebhook(database.db, of())).toMatchObject({ pauseReason: 'The receiver answered 410 Gone.' })
    pass(DAY)
    expect(await round()).toBe(0)
  })

  test('that is slow delays no other webhook', async () => {
    await add('slow', { url: receiver.url('/slow') })
    await add('fast')
    answers['/slow'] = () => {}
    await happen(...Array.from({ length: 20 }, (_, index) => [`e${index}`, `r${index}`] as const))
    const over = new AbortController()
    const deliveries = openDeliveries(
      { db: database.db, clock, log, random, sealing, trust: receiver.trust },
      over.signal,
    )
    const delivered = async () =>
      (await listDeliveries(database.db, of('fast'), { limit: 50 })).filter(({ state }) => state === 'delivered').length
    await expect.poll(async () => (await deliveries.start(), await delivered()), { timeout: 60_000 }).toBe(20)
    const slow = () => receiver.received.filter(({ path }) => path === '/slow').length
    await expect.poll(slow, { timeout: 60_000 }).toBe(4)
    await deliveries.start()
    expect(slow()).toBe(4)
    over.abort()
    await deliveries.settled()
  })
})

describe('an address that is not on the Internet', () => {
  test.each([
    ['a name that has it', '127.0.0.2'],
    ['a name that has it too', '127.0.0.1 127.0.0.2'],
    ['the metadata service', '169.254.169.254'],
    ['a private network', '10.0.0.1'],
  ])('gets nothing: %s', async (_what, addresses) => {
    await add()
    receiver.answerNames(addresses)
    await happen(['a'])
    await rounds()
    expect(await found('a')).toMatchObject({ state: 'pending', error: 'images.test is not a public address' })
    expect([receiver.internalConnections(), ids()]).toEqual([0, []])
  })

  test('gets nothing when a name has it later: each attempt checks, and uses what it has checked', async () => {
    await add()
    receiver.answerNames('127.0.0.1', '127.0.0.2')
    answers['/'] = (_request, response) => response.writeHead(500).end()
    await happen(['a'])
    await rounds()
    pass(6_000)
    await rounds()
    expect(await found('a')).toMatchObject({ attempts: 2, error: 'images.test is not a public address' })
    expect([receiver.internalConnections(), ids()]).toEqual([0, ['a']])
  })
})

describe('order', () => {
  test('the next event of a resource waits for the one before; those of others do not', async () => {
    await add()
    let isFailing = true
    answers['/'] = ({ id }, response) => response.writeHead(id === 'a1' && isFailing ? 500 : 200).end()
    await happen(['a1', 'a'], ['a2', 'a'], ['b1', 'b'], ['a3', 'a'])
    await rounds()
    expect(ids().toSorted()).toEqual(['a1', 'b1'])
    isFailing = false
    pass(6_000)
    await rounds()
    expect(ids().filter((id) => id.startsWith('a'))).toEqual(['a1', 'a1', 'a2', 'a3'])
  })

  test('an event that is given up blocks nothing', async () => {
    await add()
    answers['/'] = ({ id }, response) => response.writeHead(id === 'a1' ? 500 : 200).end()
    await happen(['a1', 'a'], ['a2', 'a'])
    for (let attempt = 0; attempt <= RETRY_SECONDS.length; attempt += 1) {
      await rounds()
      // Another delivery of the same webhook succeeds in the meantime: it is not paused.
      await happen([`other${attempt}`])
      await rounds()
      pass(86_400_000 * 1.1)
    }
    await rounds()
    expect([(await found('a1'))?.state, (await found('a2'))?.state]).toEqual(['failed', 'delivered'])
  })
})

const claim = (limit = 256) => ({ now, leasedUntil: new Date(now.getTime() + 60_000), limit })
/** How many deliveries the work reads; nothing of it stays. */
const rowsReadBy = async (work: (tx: Transaction<Tables>) => Promise<unknown>): Promise<number> => {
  await sql`analyze webhook_delivery`.execute(database.db)
  const begun = await begin(database.db)
  const { tx } = begun
  // A table that is so small would rather be read as a whole.
  await sql`set local enable_seqscan = off`.execute(tx)
  // With what the connection has read before, for up to a second.
  const counted = async () => {
    const { rows } = await sql<{ rows: number }>`select (seq_tup_read + idx_tup_fetch)::int as rows
      from pg_stat_xact_user_tables where relname = 'webhook_delivery'`.execute(tx)
    return rows[0]?.rows ?? 0
  }
  try {
    const before = await counted()
    await work(tx)
    return (await counted()) - before
  } finally {
    await begun.rollback()
  }
}
/** Deliveries as the log has them, thousands at once. */
const fill = async (columns: Record<string, unknown>, webhookId = 'hook') => {
  const prefix = `${webhookId}-filled-`
  await sql`insert into webhook_event (account_id, id, type, body)
    select ${accountId}, ${prefix}::text || place, 'server.changed', '{}' from generate_series(1, 5000) place`.execute(
    database.db,
  )
  await sql`insert into webhook_delivery
      (account_id, webhook_id, event_id, number, resource, state, created_at, next_attempt_at)
    select account_id, ${webhookId}, id, number, '', 'pending', ${now}, ${now} from webhook_event
    where account_id = ${accountId} and id like ${`${prefix}%`}`.execute(database.db)
  await database.db
    .updateTable('webhook_delivery')
    .set({ error: null, ...columns })
    .where('account_id', '=', accountId)
    .where('event_id', 'like', `${prefix}%`)
    .execute()
}

test('what waits for later, or for a disabled webhook, costs nothing while it waits', async () => {
  await add('later')
  await fill({ next_attempt_at: new Date(now.getTime() + DAY), failures: 1 }, 'later')
  await add('disabled')
  await fill({}, 'disabled')
  await database.db.updateTable('webhook').set({ enabled: false }).where('id', '=', 'disabled').execute()
  await add('paused')
  await fill({}, 'paused')
  await database.db.updateTable('webhook').set({ paused_at: now }).where('id', '=', 'paused').execute()
  await add()
  await happen(['new'])
  const read = await rowsReadBy(async (tx) => expect(await claimDeliveries(tx, claim())).toHaveLength(2))
  expect(read).toBeGreaterThan(0)
  expect(read).toBeLessThan(200)
})

test('a test event finds its disabled webhook past everything that waits', async () => {
  await add()
  await fill({})
  await change({ enabled: false })
  await database.db
    .transaction()
    .execute((tx) => addEventFor(tx, of(), { id: 'test', type: TEST_EVENT, body: '{"id":"test"}' }, now))
  const read = await rowsReadBy(async (tx) => expect(await claimDeliveries(tx, claim())).toHaveLength(1))
  expect(read).toBeLessThan(200)
  await rounds()
  expect(ids()).toEqual(['test'])
})

test('the log is pruned without reading what has not changed', async () => {
  await add()
  await fill({ state: 'delivered', next_attempt_at: null, ended_at: new Date(now.getTime() - DAY) })
  await sql`delete from webhook_delivery where account_id = ${accountId} and number not in (
    select number from webhook_delivery where account_id = ${accountId} limit ${LOG_DELIVERIES_MAXIMUM})`.execute(
    database.db,
  )
  await add('disabled')
  await fill({ resource: 'server/r', is_behind: true }, 'disabled')
  const since = new Date(now.getTime() - 600_000)
  const read = await rowsReadBy((tx) => pruneDeliveries(tx, { now, since }))
  expect(read).toBeLessThan(200)
})

describe('processes of the release before', () => {
  /** What they send: whatever has a time and nothing of its resource before it. */
  const dueBefore = async () => {
    const { rows } = await sql<{ id: string }>`select event_id as id from webhook_delivery delivery
      where account_id = ${accountId} and state = 'pending' and next_attempt_at <= ${now} and not exists (
        select 1 from webhook_delivery earlier
        where earlier.account_id = delivery.account_id and earlier.webhook_id = delivery.webhook_id
          and earlier.state = 'pending' and earlier.resource = delivery.resource and earlier.number < delivery.number)
      order by number`.execute(database.db)
    return rows.map(({ id }) => id)
  }
  const set = (eventId: string, columns: Record<string, unknown>) =>
    database.db.updateTable('webhook_delivery').set(columns).where('event_id', '=', eventId).execute()

  test('send what waited behind another delivery', async () => {
    await add()
    await happen(['a', 'r'], ['b', 'r'])
    expect(await found('b')).toMatchObject({ state: 'pending', nextAttemptAt: null })
    expect(await dueBefore()).toEqual(['a'])
    await set('a', { state: 'delivered', next_attempt_at: null, ended_at: now })
    expect(await dueBefore()).toEqual(['b'])
  })

  test('leave what waits, and tests, as they know them: these are found', async () => {
    await add()
    await happen(['a', 'r'], ['b', 'r'])
    await set('b', { next_attempt_at: null, is_behind: false })
    await set('a', { state: 'delivered', next_attempt_at: null, ended_at: now })
    await pruneDeliveries(database.db, { now })
    await rounds()
    expect(ids()).toEqual(['b'])
    await change({ enabled: false })
    await database.db
      .transaction()
      .execute((tx) => addEventFor(tx, of(), { id: 'test', type: TEST_EVENT, body: '{"id":"test"}' }, now))
    await set('test', { is_test: false })
    await rounds()
    expect(ids()).toEqual(['b'])
    await pruneDeliveries(database.db, { now })
    await rounds()
    expect(ids()).toEqual(['b', 'test'])
  })
})

test('the events of a webhook that is removed go with it, and those of others stay', async () => {
  await add()
  await add('other')
  await happen(['a'])
  await addRow('only', { events: ['server.changed'] })
  const left = async () => {
    const rows = await database.db
      .selectFrom('webhook_event')
      .select('id')
      .where('account_id', '=', accountId)
      .execute()
    return rows.map(({ id }) => id)
  }
  const remove = (webhookId: string) => database.db.transaction().execute((tx) => removeWebhook(tx, of(webhookId)))
  await remove('hook')
  expect(await left()).toEqual(['a'])
  await remove('other')
  expect(await left()).toEqual([])
})

test('what is due is found without reading what waits behind it, or for other receivers', async () => {
  await add()
  await add('other')
  answers['/'] = (_request, response) => response.writeHead(500).end()
  // One that fails, and thousands behind it.
  await happen(...Array.from({ length: 5_000 }, (_, index) => [`e${index}`, 'r'] as const))
  await rounds()
  await happen(['new'])
  await sql`analyze webhook_delivery`.execute(database.db)
  const read = await rowsReadBy((tx) => claimDeliveries(tx, claim(4)))
  expect(read).toBeGreaterThan(0)
  expect(read).toBeLessThan(200)
})

test('what waits behind a delivery that has ended unseen is found again', async () => {
  await add()
  await happen(['a', 'r'], ['b', 'r'])
  await database.db
    .updateTable('webhook_delivery')
    .set({ state: 'delivered', next_attempt_at: null, ended_at: now })
    .where('event_id', '=', 'a')
    .where('account_id', '=', accountId)
    .execute()
  expect(await round()).toBe(0)
  await pruneDeliveries(database.db, { now })
  await rounds()
  expect(ids()).toEqual(['b'])
})

test('what waited behind a delivery is due from its end on, and not late since its beginning', async () => {
  await add()
  await happen(['a', 'r'], ['b', 'r'], ['c', 'r'])
  pass(DAY)
  const [ending] = await claimDeliveries(database.db, claim())
  if (ending === undefined) throw new Error('nothing is due')
  await database.db.transaction().execute((tx) => recordAttempt(tx, ending, { now, status: 500, error: 'gave up' }))
  expect(await found('b')).toMatchObject({ state: 'pending', nextAttemptAt: now })
  await database.db
    .updateTable('webhook_delivery')
    .set({ state: 'delivered', next_attempt_at: null, ended_at: now })
    .where('event_id', '=', 'b')
    .where('account_id', '=', accountId)
    .execute()
  pass(60_000)
  await pruneDeliveries(database.db, { now })
  expect(await found('c')).toMatchObject({ state: 'pending', nextAttemptAt: now })
})

test('an event that is found while the one before ends waits for nobody', async () => {
  await add()
  await happen(['a', 'r'])
  const [ending] = await claimDeliveries(database.db, {
    now,
    leasedUntil: new Date(now.getTime() + 60_000),
    limit: 256,
  })
  if (ending === undefined) throw new Error('nothing is due')
  const added = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const finding = database.db.transaction().execute(async (tx) => {
    await lockEvents(tx, accountId)
    const resource = { type: 'server', id: 'r' }
    await addEvents(tx, accountId, [{ id: 'b', type: 'server.changed', resource, body: '{"id":"b"}' }], now)
    added.resolve()
    await ended.promise
  })
  await added.promise
  const recording = database.db
    .transaction()
    .execute((tx) => recordAttempt(tx, ending, { now, status: 200, error: null }))
  // It waits for the lock, or it has ended without one.
  await Promise.race([recording, expect.poll(() => lockWaits(database.db), { timeout: 60_000 }).toBeGreaterThan(0)])
  ended.resolve()
  await Promise.all([finding, recording])
  await rounds()
  expect(ids()).toEqual(['b'])
})

describe('processes', () => {
  test('two at once send each event once', async () => {
    await add()
    await happen(...Array.from({ length: 12 }, (_, index) => [`e${index}`, `r${index}`] as const))
    while ((await Promise.all([round(), round(), round()])).some((started) => started > 0));
    expect(ids().toSorted()).toEqual(Array.from({ length: 12 }, (_, index) => `e${index}`).toSorted())
  })

  test('one that was paused until its lease is about to end sends nothing', async () => {
    await add()
    await happen(['a'])
    const parts = { db: database.db, clock, log, random, sealing, trust: receiver.trust }
    const deliveries = openDeliveries(parts, new AbortController().signal)
    expect(await deliveries.start()).toBe(1)
    pass(50_000)
    await deliveries.settled()
    expect(ids()).toEqual([])
    expect(await found('a')).toMatchObject({ state: 'pending', error: null })
    pass(10_000)
    await rounds()
    expect(ids()).toEqual(['a'])
  })

  test('one that dies before it has recorded what came of an attempt: another one sends it again', async () => {
    await add()
    await happen(['a'])
    const over = new AbortController()
    // It is dead from the moment at which the receiver has the event.
    answers['/'] = () => over.abort()
    await round(over.signal)
    expect(ids()).toEqual(['a'])
    delete answers['/']
    expect(await round()).toBe(0)
    pass(60_000)
    await rounds()
    expect(ids()).toEqual(['a', 'a'])
    expect(await found('a')).toMatchObject({ state: 'delivered', attempts: 2 })
  })
})

describe('the log', () => {
  test('an event is sent again by hand, with the same id and body', async () => {
    await add()
    await happen(['a', 'a'])
    await rounds()
    await database.db.transaction().execute((tx) => queueAgain(tx, of(), 'a', now))
    await rounds()
    expect(ids()).toEqual(['a', 'a'])
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
  })

  test('is bounded by age and by number; what waits is never removed', async () => {
    await add()
    await happen(['old'], ['waits'])
    await database.db
      .updateTable('webhook_delivery')
      .set({ state: 'delivered', next_attempt_at: null, ended_at: now })
      .where('event_id', '=', 'old')
      .execute()
    pass(14 * DAY)
    await pruneDeliveries(database.db, { now })
    expect(await found('old')).toBeDefined()
    pass(1)
    await pruneDeliveries(database.db, { now })
    expect([await found('old'), (await found('waits'))?.state]).toEqual([undefined, 'pending'])
    const events = await database.db.selectFrom('webhook_event').select('id').execute()
    expect(events.map(({ id }) => id)).not.toContain('old')

    const many = Array.from({ length: LOG_DELIVERIES_MAXIMUM + 3 }, (_, index) => [`e${index}`] as const)
    await happen(...many)
    await database.db
      .updateTable('webhook_delivery')
      .set({ state: 'failed', next_attempt_at: null, ended_at: now })
      .where('event_id', 'like', 'e%')
      .where('account_id', '=', accountId)
      .execute()
    await pruneDeliveries(database.db, { now })
    const left = await database.db
      .selectFrom('webhook_delivery')
      .select('event_id')
      .where('account_id', '=', accountId)
      .execute()
    expect(left).toHaveLength(LOG_DELIVERIES_MAXIMUM + 1)
    expect(left.map(({ event_id }) => event_id)).not.toContain('e2')
  })

  test('what waits for a webhook that stays disabled is given up when the log would forget it', async () => {
    await add()
    await happen(['a'])
    const fields = { name: 'hook', url: receiver.url(), events: ['*'], enabled: false }
    await database.db.transaction().execute((tx) => changeWebhook(tx, of(), fields))
    pass(14 * DAY)
    await pruneDeliveries(database.db, { now })
    expect((await found('a'))?.state).toBe('pending')
    pass(1)
    await pruneDeliveries(database.db, { now })
    expect(await found('a')).toMatchObject({ state: 'failed', error: 'the webhook was disabled or paused' })
  })

  test('a webhook with too many events that wait gets no more; they are in its log', async () => {
    await add()
    await happen(['first'])
    await sql`insert into webhook_event (account_id, id, type, body)
      select ${accountId}, 'x' || place, 'server.changed', '{}'
      from generate_series(2, ${PENDING_MAXIMUM}::int) place`.execute(database.db)
    await sql`insert into webhook_delivery (account_id, webhook_id, event_id, number, resource, state, created_at)
      select account_id, 'hook', id, number, '', 'pending', ${now} from webhook_event
      where account_id = ${accountId} and id like 'x%'`.execute(database.db)
    await happen(['full'])
    expect(await found('full')).toMatchObject({ state: 'failed', error: 'too many events wait' })
    expect((await countDeliveries(database.db, now)).pending).toBeGreaterThanOrEqual(PENDING_MAXIMUM)
  })
})
