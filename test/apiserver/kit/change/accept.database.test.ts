/** What becomes of a change when Kubernetes or PostgreSQL fail in the middle of it. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { listQuotas } from '../../../../db/account/index.ts'
import type { Database } from '../../../../db/kit/open.ts'
import type { Transport, TransportRequest, TransportResponse } from '../../../../kit/kube/transport.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
/** Stands in the way of the next requests to Kubernetes. */
let fault: ((request: TransportRequest, serve: Transport) => Promise<TransportResponse>) | undefined

/** The answer to the next commit with an intent is lost. */
let losesCommit = false
const lossy = (db: Database): Database =>
  new Proxy(db, {
    get(target, name) {
      if (name === 'transaction') return () => ({ execute: (body: Body) => losing(target, body) })
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
type Body = Parameters<ReturnType<Database['transaction']>['execute']>[0]

/** So many transactions fail before they begin. */
let transactionsFailing = 0

async function losing(db: Database, body: Body): Promise<unknown> {
  if (transactionsFailing > 0) {
    transactionsFailing--
    throw new Error('Connection terminated unexpectedly')
  }
  const result = await db.transaction().execute(body)
  if (!losesCommit || (await intents()) === 0) return result
  losesCommit = false
  throw new Error('Connection terminated unexpectedly')
}

beforeAll(async () => {
  cloud = await openCloud(lossy(database.db), {
    disturb: (serve) => (request) => fault?.(request, serve) ?? serve(request),
  })
  ada = await cloud.signUp('ada@example.com')
  await ada.send('POST', '/v1/ssh-keys', { body: { name: 'key', public_key: PUBLIC_KEY } })
})
beforeEach(() => void (fault = undefined))
afterAll(() => cloud.close())

let made = 0
const create = () =>
  ada.send('POST', '/v1/servers', {
    body: { zone: cloud.zone, hostname: `web-${(made += 1)}`, plan: 'tiny', template: 'tiny-linux' },
  })
const isServerWrite = ({ method, path }: TransportRequest) => method !== 'GET' && /\/servers(\/|\?|$)/.test(path)
const intents = async () => (await database.db.selectFrom('change_intent').select('operation_id').execute()).length
/** Until the pool has noticed its broken connections: what comes next meets none of them. */
const noticeBroken = () => expect.poll(() => Promise.all(Array.from({ length: 20 }, intents))).toHaveLength(20)
const used = async () => (await listQuotas(cloud.db, ada.accountId)).find((quota) => quota.name === 'servers')?.used
const refusing = (code: number, reason: string): TransportResponse => ({
  status: code,
  headers: {},
  text: async () => JSON.stringify({ kind: 'Status', status: 'Failure', code, reason, message: 'said no' }),
  lines: async function* () {},
})
const audited = async (reply: Awaited<ReturnType<typeof create>>) =>
  (await cloud.auditOf(reply)).map((entry) => entry.outcome)

test('a write whose answer is lost is found, and accepted', async () => {
  fault = async (request, serve) => {
    const response = await serve(request)
    if (isServerWrite(request)) throw new Error('connection reset')
    return response
  }
  const reply = await create()
  expect(reply.status).toBe(202)
  expect(await audited(reply)).toEqual(['success'])
  expect(await intents()).toBe(0)
})

test(
  'a write that nobody knows the outcome of is 503; its intent and claims stay for the sweeper, which writes the ' +
    'entry',
  async () => {
    const before = await used()
    fault = async (request, serve) => {
      if (isServerWrite(request))
        fault = async () => {
          throw new Error('connection refused')
        }
      if (isServerWrite(request)) throw new Error('connection refused')
      return serve(request)
    }
    const reply = await create()
    expect(reply.status).toBe(503)
    expect(await audited(reply)).toEqual([])
    expect([await intents(), await used()]).toEqual([1, (before ?? 0) + 1])
    await cloud.db.deleteFrom('change_intent').execute()
  },
)

test('claims whose commit nobody heard of are given back, and written down as failed once', async () => {
  const before = await used()
  losesCommit = true
  const reply = await create()
  expect(losesCommit).toBe(false)
  expect(reply.status).toBe(503)
  expect([await intents(), await used()]).toEqual([0, before])
  expect(await audited(reply)).toEqual(['failed'])
})

test('a name that somebody has is looked at, a refusal for good gives everything back', async () => {
  const before = await used()
  fault = async (request, serve) => (isServerWrite(request) ? refusing(409, 'AlreadyExists') : serve(request))
  const undecided = await create()
  expect(undecided.status).toBe(503)
  await cloud.db.deleteFrom('change_intent').execute()

  fault = async (request, serve) => (isServerWrite(request) ? refusing(422, 'Invalid') : serve(request))
  const invalid = await create()
  expect(invalid.status).toBe(400)
  expect([await intents(), await used()]).toEqual([0, (before ?? 0) + 1])
})

test('a deletion that Kubernetes refuses is refused as it says, and needs no look at what claims nothing', async () => {
  const { body } = await create()
  fault = async (request, serve) => {
    if (!isServerWrite(request)) return serve(request)
    fault = async () => {
      throw new Error('connection refused')
    }
    return refusing(422, 'Invalid')
  }
  const reply = await ada.send('DELETE', `/v1/servers/${body['server'].id}`)
  expect([reply.status, await intents()]).toEqual([400, 0])
})

test.each([
  { failures: 2, entries: ['failed'], left: 0 },
  { failures: 5, entries: [], left: 1 },
])(
  'a refused write, and a database away for $failures transactions: the entry is written by the request or by the ' +
    'sweeper, once',
  async ({ failures, entries, left }) => {
    const before = (await used()) ?? 0
    fault = async (request, serve) => {
      if (!isServerWrite(request)) return serve(request)
      transactionsFailing = failures
      return refusing(404, 'NotFound')
    }
    const reply = await create()
    expect([reply.status, await audited(reply), await intents(), await used()]).toEqual([
      503,
      entries,
      left,
      before + left,
    ])
    await cloud.db.deleteFrom('change_intent').execute()
  },
)

test('a database that fails after the write does not revoke the answer; the intent stays', async () => {
  fault = async (request, serve) => {
    const response = await serve(request)
    if (isServerWrite(request)) await database.breakConnections()
    return response
  }
  const reply = await create()
  expect(reply.status).toBe(202)
  expect(
    await cloud.admin.get(Server, { namespace: accountNamespace(ada.accountId), name: reply.body['server'].id }),
  ).toBeDefined()
  await noticeBroken()
  const left = await cloud.db.selectFrom('change_intent').select('operation_id').execute()
  const entries = await audited(reply)
  // The pool may have had a connection that was not broken; then the intent is settled already.
  expect(left.length + entries.length).toBe(1)
  await cloud.db.deleteFrom('change_intent').execute()
})

test('a change that is overtaken is judged again and made', async () => {
  const { body } = await create()
  const key = { namespace: accountNamespace(ada.accountId), name: body['server'].id }
  let overtaken = 0
  fault = async (request, serve) => {
    if (isServerWrite(request) && request.method === 'PATCH' && overtaken < 2) {
      overtaken++
      await cloud.admin.patch(Server, key, { metadata: { annotations: { other: String(overtaken) } } })
    }
    return serve(request)
  }
  const reply = await ada.send('PATCH', `/v1/servers/${key.name}`, { body: { title: 'mine' } })
  expect(reply.status).toBe(200)
  expect(overtaken).toBe(2)
  expect(await audited(reply)).toEqual(['success'])
})

test('a change that is always overtaken is 409, written down as failed, and leaves no intent', async () => {
  const { body } = await create()
  const key = { namespace: accountNamespace(ada.accountId), name: body['server'].id }
  fault = async (request, serve) =>
    isServerWrite(request) && request.method === 'PATCH' ? refusing(409, 'Conflict') : serve(request)
  const reply = await ada.send('PATCH', `/v1/servers/${key.name}`, { body: { title: 'mine' } })
  expect([reply.status, reply.body['reason']]).toEqual([409, 'state_not_allowed'])
  expect(await audited(reply)).toEqual(['failed'])
  expect(await intents()).toBe(0)
})

test('a change of what is deleted between its reading and its writing is 404, and leaves no intent', async () => {
  const { body } = await create()
  const key = { namespace: accountNamespace(ada.accountId), name: body['server'].id }
  let isDeleted = false
  fault = async (request, serve) => {
    if (isServerWrite(request) && request.method === 'PATCH' && !isDeleted) {
      isDeleted = true
      await cloud.admin.patch(Server, key, { metadata: { finalizers: [] } })
      await cloud.admin.delete(Server, key)
    }
    return serve(request)
  }
  const reply = await ada.send('PATCH', `/v1/servers/${key.name}`, { body: { title: 'mine' } })
  expect([isDeleted, await cloud.admin.get(Server, key)]).toEqual([true, undefined])
  expect(reply.status).toBe(404)
  expect(await audited(reply)).toEqual([])
  expect(await intents()).toBe(0)
})

test('what is made where its namespace is being removed is 503, and gives everything back', async () => {
  const before = await used()
  fault = async (request, serve) => (isServerWrite(request) ? refusing(404, 'NotFound') : serve(request))
  const reply = await create()
  expect([reply.status, await audited(reply), await intents(), await used()]).toEqual([503, ['failed'], 0, before])
})

test('a rename whose entry is still owed is settled before the next one covers its traces', async () => {
  const { body } = await create()
  fault = async (request, serve) => {
    const response = await serve(request)
    if (isServerWrite(request)) await database.breakConnections()
    return response
  }
  const first = await ada.send('PATCH', `/v1/servers/${body['server'].id}`, { body: { title: 'one' } })
  fault = undefined
  await noticeBroken()
  const second = await ada.send('PATCH', `/v1/servers/${body['server'].id}`, { body: { title: 'two' } })
  expect([first.status, second.status]).toEqual([200, 200])
  expect([...(await audited(first)), ...(await audited(second))]).toEqual(['success', 'success'])
  expect(await intents()).toBe(0)
})

test('an operation whose object could not be made is not forgotten when another takes its place', async () => {
  const isOperationWrite = ({ method, path }: TransportRequest) =>
    method !== 'GET' && /\/operations(\/|\?|$)/.test(path)
  fault = async (request, serve) => (isOperationWrite(request) ? refusing(500, 'InternalError') : serve(request))
  const {
    body: { server, operation },
  } = await create()
  expect((await ada.send('DELETE', `/v1/servers/${server.id}`)).status).toBe(503)
  await cloud.db.deleteFrom('change_intent').execute()
  fault = undefined
  expect((await ada.send('DELETE', `/v1/servers/${server.id}`)).status).toBe(202)
  const reply = await ada.send('GET', `/v1/operations/${operation.id}`)
  expect([reply.status, reply.body['operation'].kind]).toEqual([200, 'server.create'])
})

test('without Kubernetes reads are 503 and lists are answered from what is known', async () => {
  const { body } = await create()
  fault = async () => {
    throw new Error('connection refused')
  }
  expect((await ada.send('GET', `/v1/servers/${body['server'].id}`)).status).toBe(503)
  expect((await ada.send('GET', '/v1/servers?limit=1')).body['items'][0].id).toBe(body['server'].id)
})

test('an operator whose write waits for Kubernetes keeps no other operator waiting', async () => {
  await cloud.grant('olga', [{ resources: ['publicpools'], verbs: ['get', 'list', 'create'] }])
  const pool = (number: number) =>
    cloud.operate('olga', 'POST', '/v1/operator/public-pools', {
      zone: cloud.zone,
      family: 'ipv4',
      cidr: `198.51.100.${number * 16}/28`,
      use: 'server_ipv4',
    })
  const [isHeld, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  fault = async (request, serve) => {
    if (request.method !== 'GET' && request.path.includes('/publicpools')) {
      fault = undefined // the first only
      isHeld.resolve()
      await goOn.promise
    }
    return serve(request)
  }
  const first = pool(1)
  await isHeld.promise
  const second = await pool(2)
  goOn.resolve()
  expect([second.status, (await first).status]).toEqual([202, 202])
  for (const reply of [await first, second])
    expect(
      await cloud.db
        .selectFrom('audit_entry')
        .select('action')
        .where('request_id', '=', String(reply.headers['x-request-id']))
        .execute(),
    ).toEqual([{ action: 'public_pool.create' }])
})
