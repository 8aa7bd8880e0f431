/** Pushing the audit log, with real receivers and a real database; the time is moved by hand. */
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startBatches } from '../../../../controllers/nouns/audit-sink/index.ts'
import { appendAudits } from '../../../../db/audit/index.ts'
import {
  claimSinks,
  countSinks,
  findAuditSink,
  insertAuditSink,
  sealOfSink,
  updateAuditSink,
} from '../../../../db/audit-sink/index.ts'
import { BATCH_ENTRIES_MAXIMUM } from '../../../../domain/audit-sink/rules.ts'
import { secretText } from '../../../../domain/webhook/signature.ts'
import { prove, readSignature, signingKey } from '../../../../kit/s3/signature.ts'
import { type Clock, systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { createSealing } from '../../../../kit/sys/sealing.ts'
import { verifyAudit } from '../../../../tools/verify-audit.ts'
import { createAccount, giveStanding } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { isVerified, startReceiver, type Received, type Receiver } from '../webhook/receiver.ts'

const HOUR = 3_600_000
const SECRET = secretText(Buffer.alloc(32, 3))
const ACCESS = { accessKeyId: 'AKIDEXAMPLE', accessKey: 'wJalrXUtnFEMI' }
const sealing = createSealing([{ id: 'k1', key: Buffer.alloc(32, 7) }], random)
const database = useDatabase()
let receiver: Receiver
let answer: (request: Received, response: ServerResponse) => void
let now: Date
const clock: Clock = { ...systemClock, now: () => now, after: () => () => {} }
const pass = (milliseconds: number) => void (now = new Date(now.getTime() + milliseconds))

beforeAll(async () => {
  receiver = await startReceiver((request, response) => answer(request, response))
})
afterAll(() => receiver.close())

let accountId: string
let sinkId: string
beforeEach(async () => {
  await database.db.deleteFrom('audit_sink').execute()
  await database.db.deleteFrom('email_outbox').execute()
  // The server judges signatures of buckets by its own time.
  now = systemClock.now()
  answer = (_request, response) => response.end()
  receiver.received.splice(0)
  receiver.answerNames('127.0.0.1')
  accountId = await createAccount(database.db)
  sinkId = newUuid(random)
})

const happen = (count: number) =>
  database.db.transaction().execute((tx) =>
    appendAudits(
      tx,
      Array.from({ length: count }, (_, index) => ({
        account_id: accountId,
        actor_email: 'ada@example.com',
        actor_kind: 'user' as const,
        user_id: null,
        staff_id: null,
        token_id: null,
        token_name: null,
        action: 'ssh_key.create',
        resource_type: 'ssh_key',
        resource_id: `key ${index} grüße`,
        detail: {},
        outcome: 'success' as const,
        source_ip: '',
        user_agent: '',
        request_id: newUuid(random),
        changes: [],
      })),
      { clock, random },
    ),
  )
const add = (fields: object = {}) =>
  insertAuditSink(database.db, accountId, {
    id: sinkId,
    name: 'sink',
    type: 'https',
    url: receiver.url('/audit'),
    bucket: null,
    prefix: null,
    region: null,
    access_key_id: null,
    sealed_access_key: null,
    sealed_secret: sealOfSink(sealing, accountId, sinkId, 'secret', SECRET),
    enabled: true,
    generation: 1,
    created_at: now,
    sent_sequence: 0,
    batch_through: null,
    skipped_entries: 0,
    failures: 0,
    failing_since: null,
    noticed_at: null,
    error: null,
    response_status: null,
    next_attempt_at: now,
    leased_until: null,
    sent_at: null,
    pending_entries: 0,
    oldest_pending_at: null,
    ...fields,
  })
const round = async (signal = new AbortController().signal, by = sealing) => {
  const parts = { db: database.db, clock, log, random, sealing: by, trust: receiver.trust }
  const started = await startBatches(parts, 64, signal)
  await Promise.all(started)
  return started.length
}
const sink = () => findAuditSink(database.db, accountId, sinkId)
const sequences = () =>
  receiver.received.map(({ headers }) => [headers['audit-first-sequence'], headers['audit-last-sequence']].join('-'))
const lines = () => receiver.received.flatMap(({ body }) => body.trimEnd().split('\n'))

test('the log arrives in its order, in signed batches that verify as an export does', async () => {
  await happen(BATCH_ENTRIES_MAXIMUM + 3)
  await add()
  await round()
  await round()
  expect(sequences()).toEqual([
    `1-${BATCH_ENTRIES_MAXIMUM}`,
    `${BATCH_ENTRIES_MAXIMUM + 1}-${BATCH_ENTRIES_MAXIMUM + 3}`,
  ])
  expect(verifyAudit(lines()).text).toMatch(new RegExp(`^OK: ${BATCH_ENTRIES_MAXIMUM + 3} entries`))
  const [first, second] = receiver.received as [Received, Received]
  expect(second.headers['audit-previous-hash']).toBe(first.headers['audit-last-hash'])
  expect(receiver.received.map((request) => isVerified(request, SECRET))).toEqual([true, true])
  expect(first.headers['webhook-id']).toBe(`audit-${sinkId}-1-${BATCH_ENTRIES_MAXIMUM}`)
  expect(await sink()).toMatchObject({ sent_sequence: BATCH_ENTRIES_MAXIMUM + 3, pending_entries: 0, error: null })

  await happen(1)
  expect(await round()).toBe(0)
  pass(5_000)
  await round()
  expect(verifyAudit(lines()).isWhole).toBe(true)
})

test('a batch that fails is sent again as it was, also when the log has grown; the owners get one mail', async () => {
  await giveStanding(database.db, accountId)
  await happen(2)
  await add()
  answer = (_request, response) => response.writeHead(503).end()
  await round()
  expect(await sink()).toMatchObject({ error: 'the receiver answered 503', response_status: 503, pending_entries: 2 })
  await happen(3)
  for (let hour = 0; hour < 3; hour += 1) {
    pass(HOUR)
    await round()
  }
  const mails = await database.db.selectFrom('email_outbox').select('subject').execute()
  expect(mails.map(({ subject }) => subject)).toEqual(['Your audit log cannot be sent'])
  answer = (_request, response) => response.end()
  pass(HOUR)
  await round()
  expect(new Set(sequences())).toEqual(new Set(['1-2']))
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
  expect(await sink()).toMatchObject({ sent_sequence: 2, failing_since: null, error: null })
  pass(5_000)
  await round()
  expect(sequences().at(-1)).toBe('3-5')
})

test('a process that dies before it has recorded a batch: the next one sends the same under the same id', async () => {
  await happen(2)
  await add()
  const over = new AbortController()
  answer = () => over.abort()
  await round(over.signal)
  answer = (_request, response) => response.end()
  await happen(1)
  expect(await round()).toBe(0)
  pass(120_000)
  await round()
  const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
  expect(ids).toEqual([`audit-${sinkId}-1-2`, `audit-${sinkId}-1-2`])
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
})

test('processes at once send each batch once', async () => {
  await happen(2)
  await add()
  await Promise.all([round(), round(), round()])
  expect(sequences()).toEqual(['1-2'])
})

test('a bucket gets each batch as an object, by a request that its store accepts', async () => {
  await happen(2)
  await add({
    type: 's3',
    url: receiver.url(''),
    bucket: 'audit',
    prefix: 'logs/of us/',
    region: 'eu-1',
    access_key_id: ACCESS.accessKeyId,
    sealed_access_key: sealOfSink(sealing, accountId, sinkId, 'access key', ACCESS.accessKey),
  })
  const refusals: unknown[] = []
  answer = (request, response) => {
    const headers = new Map(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    try {
      const signature = readSignature(headers, new Map())
      const rawHeaders = [...headers].flat()
      prove(
        { method: 'PUT', target: request.path, rawHeaders },
        signature,
        signingKey(ACCESS.accessKey, signature.day, 'eu-1'),
        systemClock.now(),
      )
    } catch (error) {
      refusals.push(error)
    }
    response.end()
  }
  await round()
  expect(refusals).toEqual([])
  const [request] = receiver.received as [Received]
  expect(request.path).toBe(`/audit/logs/of%20us/${accountId}/0000000000000001-0000000000000002.ndjson`)
  expect(verifyAudit(request.body.trimEnd().split('\n')).isWhole).toBe(true)
  const signed = {
    body: request.body,
    headers: Object.fromEntries(
      ['id', 'timestamp', 'signature'].map((name) => [
        `webhook-${name}`,
        request.headers[`x-amz-meta-webhook-${name}`],
      ]),
    ),
  }
  expect(isVerified(signed, SECRET)).toBe(true)
  expect(request.headers['x-amz-meta-audit-last-sequence']).toBe('2')
})

test('an address that is not on the Internet gets nothing', async () => {
  await happen(1)
  await add()
  receiver.answerNames('127.0.0.2')
  await round()
  expect(await sink()).toMatchObject({ error: 'images.test is not a public address' })
  expect([receiver.internalConnections(), receiver.received]).toEqual([0, []])
})

test('entries that were pruned before they were sent are counted, never passed over silently', async () => {
  await happen(5)
  await add()
  await database.db
    .updateTable('audit_head')
    .set({ pruned_through_sequence: 2 })
    .where('account_id', '=', accountId)
    .execute()
  await database.db.deleteFrom('audit_entry').where('account_id', '=', accountId).where('sequence', '<=', 2).execute()
  await round()
  expect(sequences()).toEqual(['3-5'])
  expect(await sink()).toMatchObject({ sent_sequence: 5, skipped_entries: 2 })
})

test.each([
  [
    'a secret whose key is missing',
    (): Promise<unknown> => Promise.resolve(),
    createSealing([{ id: 'k2', key: Buffer.alloc(32, 8) }], random),
    'the platform cannot open the secrets of the sink: contact its operator',
  ],
  [
    'a gap in the log',
    (): Promise<unknown> =>
      database.db.deleteFrom('audit_entry').where('account_id', '=', accountId).where('sequence', '=', 2).execute(),
    sealing,
    'entries of the log that come next are missing: contact the operator of the platform',
  ],
] as const)('%s is a failed attempt with a reason, and the owners get a mail', async (_what, happens, by, error) => {
  await giveStanding(database.db, accountId)
  await happen(3)
  await add()
  await happens()
  await round(undefined, by)
  expect(await sink()).toMatchObject({ error, response_status: null, failures: 1, sent_sequence: 0 })
  expect(receiver.received).toEqual([])
  pass(HOUR)
  await round(undefined, by)
  const mails = await database.db.selectFrom('email_outbox').select('subject').execute()
  expect(mails).toHaveLength(1)
})

test('accounts that have less in progress come first', async () => {
  await happen(1)
  await add()
  const second = newUuid(random)
  await add({ id: second, name: 'second', sealed_secret: sealOfSink(sealing, accountId, second, 'secret', SECRET) })
  const claim = () => claimSinks(database.db, { now, leasedUntil: new Date(now.getTime() + HOUR), limit: 1 })
  const [first] = await claim()
  expect(first?.account_id).toBe(accountId)
  const greedy = accountId
  accountId = await createAccount(database.db)
  sinkId = newUuid(random)
  await happen(1)
  await add({ next_attempt_at: new Date(now.getTime() + 1_000) })
  pass(2_000)
  expect((await claim()).map((one) => one.account_id)).toEqual([accountId])
  expect((await claim()).map((one) => one.account_id)).toEqual([greedy])
})

test('a change of a sink that fails starts its failures anew', async () => {
  await giveStanding(database.db, accountId)
  await happen(1)
  await add({ failing_since: new Date(now.getTime() - 30 * 24 * HOUR), failures: 9, noticed_at: now })
  const before = await sink()
  if (before === undefined) throw new Error('there is no sink')
  await updateAuditSink(database.db, accountId, before)
  answer = (_request, response) => response.writeHead(500).end()
  await round()
  expect(await sink()).toMatchObject({ failures: 1, failing_since: now, noticed_at: null })
})

test('what is late and what fails is counted', async () => {
  await happen(1)
  await add()
  pass(HOUR)
  expect((await countSinks(database.db, now)).lateSeconds).toBeGreaterThanOrEqual(3_600)
  answer = (_request, response) => response.writeHead(500).end()
  await round()
  expect(await countSinks(database.db, now)).toEqual({ lateSeconds: 0, failing: 1 })
})
