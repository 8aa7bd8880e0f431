import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defined } from '../../../domain/defined.ts'
import { conflict, Problem, unauthenticated, Unavailable } from '../../../domain/problem.ts'
import type { Permission } from '../../../domain/permissions.ts'
import type { Answer, Caller, Customer } from '../../../kit/http/call.ts'
import { createChannel } from '../../../kit/http/channel.ts'
import { publicEndpoint } from '../../../kit/http/endpoint.ts'
import type { HttpRequest } from '../../../kit/http/exchange.ts'
import type { IdempotencyKeys, KeyOf, KeyRecord } from '../../../kit/http/idempotency.ts'
import {
  createPipeline,
  type PipelineOptions,
  type RequestRefusal,
  requestDurations,
} from '../../../kit/http/pipeline.ts'
import { route, type Route } from '../../../kit/http/route.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { movableClock, timedClock } from './clock.ts'

const Ok = z.strictObject({ ok: z.boolean() })
const SHARED = { summary: 'x', permission: 'read' as const, answers: { 200: Ok } }
const Thing = z.strictObject({
  name: z.string().min(2).max(5),
  size: z.int().min(1).optional(),
  nested: z.strictObject({ kind: z.enum(['a', 'b']) }).optional(),
  list: z.array(z.string()).max(2).optional(),
})
const list = route({
  ...SHARED,
  id: 'list_things',
  method: 'GET',
  path: '/v1/things',
  query: z.strictObject({ limit: z.coerce.number().int().min(1).default(9), label: z.array(z.string()).optional() }),
})
const get = route({
  ...SHARED,
  id: 'get_thing',
  method: 'GET',
  path: '/v1/things/{id}',
  params: z.strictObject({ id: z.string().regex(/^[a-z]+$/) }),
})
const create = route({
  ...SHARED,
  id: 'create_thing',
  method: 'POST',
  path: '/v1/things',
  permission: 'operate',
  audit: 'thing.create',
  body: Thing,
  requiresVerifiedEmail: true,
  requiresStanding: true,
})
const act = route({
  ...SHARED,
  id: 'act',
  method: 'POST',
  path: '/v1/things/{id}/act',
  permission: 'operate',
  audit: 'thing.act',
  params: z.strictObject({ id: z.string() }),
})
const secret = route({
  ...SHARED,
  id: 'get_secret',
  method: 'GET',
  path: '/v1/secret',
  permission: 'operate',
  audit: 'thing.secret',
  isCredentialRead: true,
})
const own = route({
  ...SHARED,
  id: 'own',
  method: 'POST',
  path: '/v1/own',
  permission: 'self',
  credentials: ['session'],
  isRefusedToSupport: true,
  audit: 'own',
})
const machine = route({
  ...SHARED,
  id: 'machine',
  method: 'POST',
  path: '/v1/machine',
  credentials: ['token'],
  audit: 'machine',
})
const open = route({
  ...SHARED,
  id: 'open',
  method: 'POST',
  path: '/v1/open',
  credentials: ['public'],
  permission: null,
  rates: [{ name: 'open', by: 'address', perMinute: 2 }],
  body: z.strictObject({ email: z.string() }),
})
const counted = route({
  ...SHARED,
  id: 'counted',
  method: 'POST',
  path: '/v1/counted',
  audit: 'counted',
  rates: [
    { name: 'each', by: 'user', perMinute: 2 },
    { name: 'all', by: 'account', perMinute: 3 },
    { name: 'addressee', by: 'email', perMinute: 1 },
  ],
  body: z.strictObject({ email: z.string().optional() }),
})
const either = route({
  ...SHARED,
  id: 'either',
  method: 'POST',
  path: '/v1/either',
  credentials: ['session', 'public'],
  permission: null,
  audit: 'either',
})
const secrets = route({
  ...SHARED,
  id: 'create_secret',
  method: 'POST',
  path: '/v1/secrets',
  permission: 'operate',
  audit: 'secret.create',
  secretFields: ['token', 'codes'],
  answers: { 201: Ok.extend({ token: z.string(), codes: z.array(z.string()) }) },
})
const named = route({
  ...SHARED,
  id: 'named',
  method: 'POST',
  path: '/v1/named',
  audit: 'named',
  query: z.strictObject({ server_id: z.string() }),
  body: z.strictObject({ server_id: z.string(), key_ids: z.array(z.string()), name: z.string() }),
})
const ROUTES: readonly Route[] = [named, list, get, create, act, secret, secrets, own, machine, open, counted, either]

const customer = (more: Partial<Customer>): Customer => ({
  kind: 'token',
  accountId: 'acc',
  userId: 'usr',
  email: 'a@example.com',
  role: 'owner',
  permissions: ['read', 'operate', 'self'] satisfies Permission[],
  isEmailVerified: true,
  actor: 'user:usr',
  ...more,
})
const CALLERS: Readonly<Record<string, Customer>> = {
  writer: customer({ token: { id: 't1', name: 'w', scope: 'read_write' } }),
  reader: customer({ token: { id: 't2', name: 'r', scope: 'read' }, permissions: ['read'] }),
  lister: customer({ token: { id: 't3', name: 'l', scope: ['read'] }, permissions: ['read'] }),
  viewer: customer({
    kind: 'session',
    role: 'viewer',
    permissions: ['read', 'self'],
    session: { id: 's1', csrfToken: 'csrf', expiresAt: new Date(0) },
  }),
  owner: customer({ kind: 'session', session: { id: 's2', csrfToken: 'csrf', expiresAt: new Date(0) } }),
  unverified: customer({ isEmailVerified: false, token: { id: 't4', name: 'u', scope: 'read_write' } }),
  poor: customer({ accountId: 'poor', token: { id: 't5', name: 'p', scope: 'read_write' } }),
  colleague: customer({ userId: 'other', token: { id: 't6', name: 'c', scope: 'read_write' } }),
  elsewhere: customer({ accountId: 'other', userId: 'third', token: { id: 't7', name: 'e', scope: 'read_write' } }),
  watching: customer({
    kind: 'session',
    permissions: ['read', 'operate'],
    session: { id: 's3', csrfToken: 'csrf', expiresAt: new Date(0) },
    support: support('read_only'),
  }),
  helping: customer({
    kind: 'session',
    permissions: ['read', 'operate'],
    session: { id: 's4', csrfToken: 'csrf', expiresAt: new Date(0) },
    support: support('elevated'),
  }),
}
interface Document {
  readonly detail: string
  readonly reason?: string
  readonly errors?: readonly { readonly field: string; readonly detail: string }[]
}

function support(mode: 'read_only' | 'elevated'): NonNullable<Customer['support']> {
  return { staffId: 's', staffEmail: 's@example.com', staffName: 'S', reason: 'r', mode, expiresAt: new Date(0) }
}

function openPipeline(
  answer: () => Promise<Answer> | Answer = () => ({ status: 200, body: { ok: true } }),
  more: Partial<PipelineOptions> = {},
) {
  const clock = movableClock()
  const refusals: RequestRefusal[] = []
  const calls: unknown[] = []
  const counts = new Map<string, number>()
  const service = createPipeline({
    endpoints: ROUTES.map((each) =>
      publicEndpoint(each, async (call) => {
        calls.push(call)
        return answer()
      }),
    ),
    authenticate: async (request): Promise<Caller | undefined> => {
      const name = /^Bearer (.*)$/.exec(request.header('authorization') ?? '')?.[1] ?? request.cookie('session')
      if (name === undefined) return undefined
      const caller = CALLERS[name]
      if (caller === undefined) throw unauthenticated()
      return caller
    },
    requireStanding: async ({ accountId }) => {
      if (accountId === 'poor') throw new Problem(402, 'Pay first.', { reason: 'payment_method_required' })
    },
    countRequest: async (rule, key) => {
      const count = (counts.get(`${rule.name} ${key}`) ?? 0) + 1
      counts.set(`${rule.name} ${key}`, count)
      return count > (rule.perMinute ?? 0) ? 17 : 0
    },
    auditRefusal: async (refusal) => void refusals.push(refusal),
    translate: (error) => error,
    clock,
    random: systemRandom,
    log: silentLog,
    durations: requestDurations(openRegistry({ isProcessWide: false })),
    trustedProxies: [],
    isSecure: false,
    checkAnswers: true,
    ...more,
  })
  async function send(
    target: string,
    options: {
      readonly method?: string
      readonly as?: string
      readonly session?: string
      readonly headers?: Record<string, string>
      readonly body?: HttpRequest['body']
    } = {},
  ) {
    const method = options.method ?? ROUTES.find((each) => each.path === target.split('?')[0])?.method ?? 'GET'
    const session =
      options.session === undefined
        ? {}
        : { cookie: `session=${options.session}; svccloud_csrf=csrf`, 'x-csrf-token': 'csrf' }
    const response = await service({
      method,
      target,
      remoteAddress: '192.0.2.7',
      signal: new AbortController().signal,
      headers: {
        ...(options.as === undefined ? {} : { authorization: `Bearer ${options.as}` }),
        ...session,
        ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...defined({ body: options.body }),
    })
    return { ...response, json: (response.body === '' ? undefined : JSON.parse(String(response.body))) as Document }
  }
  return { service, send, refusals, calls, clock }
}
const thing = (more: object = {}) => JSON.stringify({ name: 'abc', ...more })

test('answers with secrets, changes and refusals have no tag and are not compressed', async () => {
  const { send } = openPipeline()
  const headers = { 'accept-encoding': 'gzip' }
  const plain = await send('/v1/things', { as: 'writer', headers })
  expect(plain.headers).toMatchObject({ vary: 'accept-encoding', etag: expect.stringMatching(/^W\//) })
  const { etag } = plain.headers
  expect((await send('/v1/things', { as: 'writer', headers: { 'if-none-match': String(etag) } })).status).toBe(304)
  for (const [target, options] of [
    ['/v1/secret', { as: 'writer' }],
    ['/v1/things', { as: 'writer', method: 'POST', body: thing() }],
    ['/v1/things?limit=0', { as: 'writer' }],
  ] as const) {
    const response = await send(target, { ...options, headers: { ...headers, 'if-none-match': String(etag) } })
    expect([target, response.status]).not.toEqual([target, 304])
    for (const name of ['etag', 'vary', 'content-encoding']) expect(response.headers).not.toHaveProperty(name)
  }
})

test(
  'every response has a separate request id, is never stored, ' + 'and carries a problem document when refused',
  async () => {
    const { send } = openPipeline()
    const good = await send('/v1/things', { as: 'writer', headers: { 'x-request-id': 'mine' } })
    const bad = await send('/v1/nothing', { as: 'writer' })
    for (const response of [good, bad]) {
      expect(response.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
      expect(response.headers['cache-control']).toBe('no-store')
      expect(response.headers['x-content-type-options']).toBe('nosniff')
    }
    expect(good.headers['x-request-id']).not.toBe(bad.headers['x-request-id'])
    expect(bad.headers['content-type']).toBe('application/problem+json')
    expect(bad.json).toEqual({ type: 'about:blank', title: 'Not Found', status: 404, detail: expect.any(String) })
  },
)

test('a known path with another method is 405 with Allow', async () => {
  const { send } = openPipeline()
  for (const method of ['PUT', 'DELETE', 'OPTIONS', 'BREW']) {
    const response = await send('/v1/things', { method, as: 'writer' })
    expect([response.status, response.headers['allow']], method).toEqual([405, 'GET, HEAD, POST'])
  }
})

describe('the order of refusals', () => {
  // Each row breaks everything that comes after its own rule too; the first rule wins.
  test.each([
    ['no credential', '/v1/things', { method: 'POST', body: '{' }, 401, undefined],
    ['a bad credential', '/v1/things', { method: 'POST', as: 'nobody', body: '{' }, 401, undefined],
    ['no CSRF header', '/v1/own', { session: 'watching', headers: { 'x-csrf-token': '' } }, 403, undefined],
    [
      'a CSRF header that is not the cookie',
      '/v1/things',
      { method: 'POST', session: 'owner', headers: { 'x-csrf-token': 'other' }, body: '{' },
      403,
      undefined,
    ],
    [
      'a CSRF cookie that the session did not issue',
      '/v1/things',
      {
        method: 'POST',
        headers: { cookie: 'session=owner; svccloud_csrf=forged', 'x-csrf-token': 'forged' },
        body: '{',
      },
      403,
      undefined,
    ],
    [
      'a CSRF header that the session issued beside the cookie of another',
      '/v1/things',
      {
        method: 'POST',
        headers: { cookie: 'session=owner; svccloud_csrf=forged', 'x-csrf-token': 'csrf' },
        body: '{',
      },
      403,
      undefined,
    ],
    [
      'a CSRF header without the cookie',
      '/v1/things',
      { method: 'POST', headers: { cookie: 'session=owner', 'x-csrf-token': 'csrf' }, body: '{' },
      403,
      undefined,
    ],
    ['a token where a session is needed', '/v1/own', { as: 'reader', body: '{' }, 403, undefined],
    ['a session where a token is needed', '/v1/machine', { session: 'owner', body: '{' }, 401, undefined],
    ['a support session where none may', '/v1/own', { session: 'helping', body: '{' }, 403, undefined],
    ['an unverified address', '/v1/things', { method: 'POST', as: 'unverified', body: '{' }, 403, 'email_unverified'],
    [
      'a read-only token on a credential read',
      '/v1/secret',
      { as: 'reader' },
      403,
      'read_only_token_cannot_read_credentials',
    ],
    [
      'a token of reading permissions on a credential read',
      '/v1/secret',
      { as: 'lister' },
      403,
      'read_only_token_cannot_read_credentials',
    ],
    ['a missing permission', '/v1/things', { method: 'POST', as: 'reader', body: '{' }, 403, undefined],
    ['a body that is no JSON', '/v1/things', { method: 'POST', as: 'poor', body: '{' }, 400, undefined],
    ['no standing', '/v1/things', { method: 'POST', as: 'poor', body: thing() }, 402, 'payment_method_required'],
  ] as const)('%s', async (_what, target, options, status, reason) => {
    const { send, calls } = openPipeline()
    const response = await send(target, { ...options })
    expect([response.status, response.json.reason]).toEqual([status, reason])
    expect(calls).toEqual([])
  })

  test('the detail of the first refusal says what to do', async () => {
    const { send } = openPipeline()
    expect((await send('/v1/things', { method: 'POST', as: 'reader', body: thing() })).json.detail).toContain('operate')
    expect((await send('/v1/own', { as: 'writer' })).json.detail).toContain('session')
  })

  test('a read-only support session reads no credential, also with the permission to', async () => {
    const { send, calls } = openPipeline()
    expect(await send('/v1/secret', { session: 'watching' })).toMatchObject({
      status: 403,
      json: { detail: 'A read-only support session may not read credentials.' },
    })
    expect(calls).toEqual([])
    expect((await send('/v1/secret', { session: 'helping' })).status).toBe(200)
  })
})

describe('refusals are audited', () => {
  test.each([
    ['a denied mutation', '/v1/things', { method: 'POST', as: 'reader', body: thing() }, ['create_thing denied ']],
    [
      'a missing CSRF header',
      '/v1/things',
      { method: 'POST', session: 'owner', headers: { 'x-csrf-token': '' }, body: thing() },
      ['create_thing denied '],
    ],
    ['a denied credential read', '/v1/secret', { as: 'reader' }, ['get_secret denied ']],
    ['no standing', '/v1/things', { method: 'POST', as: 'poor', body: thing() }, ['create_thing failed ']],
    ['a conflict in the handler', '/v1/things/some/act', { method: 'POST', as: 'writer' }, ['act failed some']],
    ['bad input', '/v1/things', { method: 'POST', as: 'writer', body: '{}' }, []],
    ['no credential', '/v1/things', { method: 'POST', body: thing() }, []],
    ['a denied plain read', '/v1/things', { as: 'nobody' }, []],
  ] as const)('%s', async (_what, target, options, expected) => {
    const { send, refusals } = openPipeline(() => {
      throw conflict('in_use', 'It is in use.')
    })
    await send(target, { ...options })
    expect(refusals.map(({ route: { id }, outcome, resourceId }) => `${id} ${outcome} ${resourceId}`)).toEqual(expected)
  })

  test('one that cannot be written down becomes an outage', async () => {
    const { send } = openPipeline(undefined, {
      auditRefusal: async () => {
        throw new Unavailable('the database')
      },
    })
    expect((await send('/v1/things', { method: 'POST', as: 'reader', body: thing() })).status).toBe(503)
  })
})

describe('input', () => {
  test.each([
    ['a missing field', '{}', 'name', 'is required'],
    ['a wrong type', thing({ size: 'x' }), 'size', 'must be a number'],
    ['a number out of range', thing({ size: 0 }), 'size', 'must be at least 1'],
    ['a text too short', thing({ name: 'a' }), 'name', 'must have at least 2 characters'],
    ['a text too long', thing({ name: 'abcdef' }), 'name', 'must have at most 5 characters'],
    ['an unknown field', thing({ colour: 1 }), 'colour', 'is not known here'],
    ['an unknown field inside', thing({ nested: { kind: 'a', x: 1 } }), 'nested.x', 'is not known here'],
    ['a value that is none of the set', thing({ nested: { kind: 'c' } }), 'nested.kind', 'must be one of a, b'],
    ['too many items', thing({ list: ['a', 'b', 'c'] }), 'list', 'must have at most 2 items'],
    ['an item of another type', thing({ list: [1] }), 'list.0', 'must be a string'],
    ['a NUL character', '{"name":"a\\u0000b"}', 'name', 'must be well-formed text'],
    ['half of a surrogate pair', '{"name":"a\\ud800"}', 'name', 'must be well-formed text'],
    ['half of a surrogate pair in capitals', '{"name":"a\\uD800"}', 'name', 'must be well-formed text'],
    ['the other half in capitals', '{"name":"a\\uDFFF"}', 'name', 'must be well-formed text'],
    ['the other half in capitals, inside', '{"name":"abc","list":["\\uDC00"]}', 'list.0', 'must be well-formed text'],
    ['a prototype', '{"name":"abc","__proto__":{"x":1}}', '__proto__', 'is not known here'],
    ['null for a text', thing({ name: null }), 'name', 'must be a string'],
  ])('%s', async (_what, body, field, detail) => {
    const { send } = openPipeline()
    const { status, json } = await send('/v1/things', { method: 'POST', as: 'writer', body })
    expect([status, json.errors]).toEqual([400, [{ field, detail }]])
  })

  test.each([
    ['no JSON', '{"name":'],
    ['a list', '[]'],
    ['a text', '"x"'],
    ['null', 'null'],
    ['bad UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
  ])('a body of %s is 400', async (_what, body) => {
    const { send } = openPipeline()
    expect((await send('/v1/things', { method: 'POST', as: 'writer', body })).status).toBe(400)
  })

  test.each(['gzip', 'br', 'identity, gzip', 'plain'])(
    'a body that says it is packed as %s is 415',
    async (encoding) => {
      const { send, calls } = openPipeline()
      const headers = { 'content-encoding': encoding }
      expect((await send('/v1/things', { as: 'writer', method: 'POST', body: thing(), headers })).status).toBe(415)
      expect(calls).toEqual([])
    },
  )

  test('a body that is not packed may say so, and no body may say anything', async () => {
    const { send } = openPipeline()
    const packed = (encoding: string) => ({ as: 'writer', method: 'POST', headers: { 'content-encoding': encoding } })
    expect((await send('/v1/things', { ...packed('Identity'), body: thing() })).status).toBe(200)
    expect((await send('/v1/things/1/act', packed('gzip'))).status).toBe(200)
  })

  test('another content type is 415; parameters of the right one are no matter', async () => {
    const { send } = openPipeline()
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', '']) {
      expect(
        (await send('/v1/things', { method: 'POST', as: 'writer', body: thing(), headers: { 'content-type': type } }))
          .status,
        type,
      ).toBe(415)
    }
    expect(
      (
        await send('/v1/things', {
          method: 'POST',
          as: 'writer',
          body: thing(),
          headers: { 'content-type': 'Application/JSON; charset=utf-8' },
        })
      ).status,
    ).toBe(200)
  })

  test('a body over the limit is 413, declared or found out', async () => {
    const { send } = openPipeline()
    const large = thing({ name: 'x'.repeat(1_048_577) })
    async function* chunks() {
      for (let sent = 0; sent < 20; sent++) yield Buffer.alloc(65_536, 0x20)
    }
    expect((await send('/v1/things', { method: 'POST', as: 'writer', body: large })).status).toBe(413)
    expect((await send('/v1/things', { method: 'POST', as: 'writer', body: chunks() })).status).toBe(413)
    expect(
      (await send('/v1/things', { method: 'POST', as: 'writer', body: '{}', headers: { 'content-length': '2000000' } }))
        .status,
    ).toBe(413)
  })

  test('an operation without a body takes none, or an empty object', async () => {
    const { send } = openPipeline()
    expect((await send('/v1/things/a/act', { method: 'POST', as: 'writer' })).status).toBe(200)
    expect((await send('/v1/things/a/act', { method: 'POST', as: 'writer', body: '{}' })).status).toBe(200)
    expect((await send('/v1/things/a/act', { method: 'POST', as: 'writer', body: '{"x":1}' })).status).toBe(400)
  })

  test.each([
    ['?limit=0', 'limit'],
    ['?limit=x', 'limit'],
    ['?colour=red', 'colour'],
    ['?limit=1&limit=2', 'limit'],
    ['?limit=%00', 'limit'],
  ])('the query %s is 400', async (query, field) => {
    const { send } = openPipeline()
    const { status, json } = await send(`/v1/things${query}`, { as: 'writer' })
    expect([status, json.errors?.[0]?.field]).toEqual([400, field])
  })

  test('parsed values reach the handler: defaults, repeated parameters, path parameters decoded', async () => {
    const { send, calls } = openPipeline()
    await send('/v1/things?label=a&label=b%20c', { as: 'writer' })
    await send('/v1/things', { as: 'writer' })
    await send('/v1/things/a%2Fb/act', { method: 'POST', as: 'writer' })
    expect(calls).toMatchObject([
      { query: { limit: 9, label: ['a', 'b c'] } },
      { query: { limit: 9 } },
      { params: { id: 'a/b' } },
    ])
  })

  test('an id that no resource can have is 404', async () => {
    const { send } = openPipeline()
    expect((await send('/v1/things/NOT-AN-ID', { as: 'writer', method: 'GET' })).status).toBe(404)
    expect((await send('/v1/things/%zz', { as: 'writer', method: 'GET' })).status).toBe(404)
  })
})

describe('limits', () => {
  test('a caller has 600 requests a minute and 120 at once, as every answer says', async () => {
    const { send, clock } = openPipeline()
    const first = await send('/v1/things', { as: 'writer' })
    expect(first.headers).toMatchObject({
      'ratelimit-policy': '"requests";q=600;w=60',
      'ratelimit-limit': '600',
      'ratelimit-remaining': '119',
      'ratelimit-reset': '1',
    })
    for (let sent = 1; sent < 120; sent++) expect((await send('/v1/things', { as: 'writer' })).status).toBe(200)
    const over = await send('/v1/things', { as: 'writer' })
    expect([over.status, over.json.reason, over.headers['retry-after'], over.headers['ratelimit-remaining']]).toEqual([
      429,
      'rate_limited',
      '1',
      '0',
    ])
    expect((await send('/v1/things', { as: 'reader' })).status).toBe(200)
    clock.move(0.1)
    expect((await send('/v1/things', { as: 'writer' })).status).toBe(200)
    expect((await send('/v1/things', { as: 'writer' })).status).toBe(429)
    clock.move(60)
    expect((await send('/v1/things', { as: 'writer' })).headers['ratelimit-remaining']).toBe('119')
  })

  test('what is at no path, or takes another method, counts too; a bad credential does not', async () => {
    const { send } = openPipeline()
    for (const [index, target] of ['/v1/nowhere', '/v1/things'].entries()) {
      const lost = await send(target, { as: 'writer', method: 'PUT' })
      expect([lost.status, lost.headers['ratelimit-remaining']]).toEqual([index === 0 ? 404 : 405, String(119 - index)])
    }
    for (let sent = 2; sent < 120; sent++) await send('/v1/nowhere', { as: 'writer' })
    expect((await send('/v1/nowhere', { as: 'writer' })).status).toBe(429)
    for (const options of [{}, { as: 'unheard of' }]) {
      const lost = await send('/v1/nowhere', options)
      expect([lost.status, lost.headers['ratelimit-remaining']]).toEqual([404, undefined])
    }
  })

  test('a rule by address answers with the exact wait', async () => {
    const { send } = openPipeline()
    const body = '{"email":"a@example.com"}'
    expect((await send('/v1/open', { body })).status).toBe(200)
    expect((await send('/v1/open', { body })).status).toBe(200)
    const over = await send('/v1/open', { body })
    expect([over.status, over.headers['retry-after']]).toEqual([429, '17'])
  })

  test('a rule by user counts each user, one by account everybody in it, one by email the addressee', async () => {
    const { send } = openPipeline()
    const status = async (as: string, body = '{}') => (await send('/v1/counted', { as, body })).status
    expect([await status('writer'), await status('writer'), await status('writer')]).toEqual([200, 200, 429])
    expect([await status('colleague'), await status('colleague')]).toEqual([200, 429])
    expect(await status('elsewhere', '{"email":"a@example.com"}')).toBe(200)
    expect(await status('elsewhere', '{"email":"a@example.com"}')).toBe(429)
  })
})

describe('idempotency keys', () => {
  const KEY = '0b5f1a52-6f10-4a53-9f0c-6a1d5b1d9f11'
  function openKeys() {
    const known = new Map<string, KeyRecord>()
    const nameOf = ({ holder, key }: KeyOf) => `${JSON.stringify(holder)} ${key}`
    const keys: IdempotencyKeys = {
      async take(key, hash) {
        const before = known.get(nameOf(key))
        if (before === undefined) known.set(nameOf(key), { is: 'open', hash })
        return before ?? { is: 'new' }
      },
      async answered(key, answer) {
        const before = known.get(nameOf(key))
        if (before?.is === 'open') known.set(nameOf(key), { ...answer, is: 'answered', hash: before.hash })
      },
      release: async (key) => void known.delete(nameOf(key)),
    }
    return { keys, known }
  }
  const sender = (answer: () => Answer) => {
    const { send } = openPipeline(answer, { idempotencyKeys: openKeys().keys })
    return async (as = 'writer') => {
      const headers = { 'idempotency-key': KEY }
      const { status, headers: answered } = await send('/v1/things', { method: 'POST', as, body: thing(), headers })
      return [status, answered['idempotent-replayed']]
    }
  }

  test.each([
    ['an outage', () => new Unavailable('the store'), 503],
    ['a bug', () => new Error('oops'), 500],
  ])('%s keeps the key, because the change may have been made', async (_what, failure, status) => {
    let isFailing = true
    const send = sender(() => {
      if (isFailing) throw failure()
      return { status: 200, body: { ok: true } }
    })
    expect(await send()).toEqual([status, undefined])
    isFailing = false
    expect(await send()).toEqual([409, undefined])
  })
  test('a refusal frees the key', async () => {
    let isRefusing = true
    const send = sender(() => {
      if (isRefusing) throw conflict('state_not_allowed', 'Not now.')
      return { status: 200, body: { ok: true } }
    })
    expect(await send()).toEqual([409, undefined])
    isRefusing = false
    expect(await send()).toEqual([200, undefined])
    expect(await send()).toEqual([200, 'true'])
  })
  test('the secrets of an answer are not kept', async () => {
    const { keys, known } = openKeys()
    const answer = () => ({ status: 201, body: { ok: true, token: 'shown once', codes: ['one'] } })
    const { send } = openPipeline(answer, { idempotencyKeys: keys })
    const post = async () => {
      const headers = { 'idempotency-key': KEY }
      return JSON.parse((await send('/v1/secrets', { method: 'POST', as: 'writer', headers })).body as string) // JSON
    }
    expect(await post()).toEqual({ ok: true, token: 'shown once', codes: ['one'] })
    expect(JSON.stringify([...known.values()])).not.toMatch(/shown once|one"/)
    expect(await post()).toEqual({ ok: true })
  })
  test('an operator has keys, which are those of nobody else', async () => {
    const { known, keys } = openKeys()
    const operate = route({
      ...SHARED,
      id: 'grant',
      method: 'POST',
      path: '/v1/grants',
      audience: 'operator',
      credentials: ['operator'],
      permission: null,
      staffRole: 'finance',
      secretFields: ['token'],
      answers: { 201: Ok.extend({ token: z.string() }) },
    })
    const person = { kind: 'operator', actor: 'operator', roles: ['finance'], groups: [] } as const
    const staff = { email: 's@example.com', name: 'S', sessionId: 's', csrfToken: 'csrf' }
    const callers: Readonly<Record<string, Caller>> = {
      sam: { ...person, name: 's@example.com', staff: { ...staff, id: 'sam' } },
      // a user of the management cluster who is called as the id of somebody of the staff
      namesake: { ...person, name: 'sam' },
    }
    const { send } = openPipeline(() => ({ status: 201, body: { ok: true, token: 'shown once' } }), {
      endpoints: [publicEndpoint(operate, async () => ({ status: 201, body: { ok: true, token: 'shown once' } }))],
      idempotencyKeys: keys,
      authenticate: async (request) => callers[(request.header('authorization') ?? '').slice('Bearer '.length)],
    })
    const post = async (as: string) => {
      const headers = { 'idempotency-key': KEY, 'x-csrf-token': 'csrf', cookie: 'svccloud_staff_csrf=csrf' }
      const { status, headers: answered, body } = await send('/v1/grants', { method: 'POST', as, headers })
      return [status, answered['idempotent-replayed'], String(body).includes('shown once')]
    }
    expect([await post('sam'), await post('namesake'), await post('sam')]).toEqual([
      [201, undefined, true],
      [201, undefined, true],
      [201, 'true', false],
    ])
    expect(JSON.stringify([...known.values()])).not.toContain('shown once')
  })
  test('an answer is that of one account alone', async () => {
    const send = sender(() => ({ status: 200, body: { ok: true } }))
    expect([await send('writer'), await send('elsewhere'), await send('colleague')]).toEqual([
      [200, undefined],
      [200, undefined],
      [200, 'true'],
    ])
  })
})

describe('HEAD and ids', () => {
  test('HEAD finds what GET does, with its refusals, and is named beside it', async () => {
    const { send } = openPipeline()
    expect((await send('/v1/things', { method: 'HEAD', as: 'writer' })).status).toBe(200)
    expect((await send('/v1/things', { method: 'HEAD' })).status).toBe(401)
    expect((await send('/v1/own', { method: 'HEAD', as: 'writer' })).headers['allow']).toBe('POST')
    expect((await send('/v1/things', { method: 'PUT', as: 'writer' })).headers['allow']).toBe('GET, HEAD, POST')
  })
  test('an id in upper case is the same id, in paths, queries and bodies', async () => {
    const id = '0b5f1a52-6f10-4a53-9f0c-6a1d5b1d9f11'
    const { send, calls } = openPipeline()
    await send(`/v1/things/${id.toUpperCase()}/act`, { method: 'POST', as: 'writer' })
    const body = JSON.stringify({ server_id: id.toUpperCase(), key_ids: [id.toUpperCase()], name: id.toUpperCase() })
    await send(`/v1/named?server_id=${id.toUpperCase()}`, { method: 'POST', as: 'writer', body })
    expect(calls).toMatchObject([
      { params: { id } },
      { query: { server_id: id }, body: { server_id: id, key_ids: [id], name: id.toUpperCase() } },
    ])
  })
})

describe('credentials of public routes', () => {
  test('a public route never looks at a credential', async () => {
    const { send } = openPipeline()
    expect((await send('/v1/open', { as: 'nobody', body: '{"email":"a@example.com"}' })).status).toBe(200)
  })
  test('one that also takes a session knows it, and asks it for the CSRF header', async () => {
    const { send, calls } = openPipeline()
    expect((await send('/v1/either')).status).toBe(200)
    expect((await send('/v1/either', { session: 'owner' })).status).toBe(200)
    expect((await send('/v1/either', { session: 'owner', headers: { 'x-csrf-token': '' } })).status).toBe(403)
    expect(calls).toMatchObject([{ caller: { kind: 'public' } }, { caller: { kind: 'session' } }])
  })
})

describe('answers', () => {
  test('a bug is 500 with the request id and nothing else of its cause', async () => {
    const { send } = openPipeline(() => {
      throw new Error('password=hunter2')
    })
    const response = await send('/v1/things', { as: 'writer' })
    expect(response.status).toBe(500)
    expect(response.body).not.toContain('hunter2')
    expect(response.json.detail).toContain(response.headers['x-request-id'])
  })

  test('what does not answer now is 503', async () => {
    const { send } = openPipeline(() => {
      throw new Unavailable('the store')
    })
    expect((await send('/v1/things', { as: 'writer' })).status).toBe(503)
  })

  test('an answer in another shape than the route declares is a bug', async () => {
    for (const answer of [
      { status: 200, body: { ok: 'yes' } },
      { status: 200, body: { ok: true, more: 1 } },
      { status: 201, body: { ok: true } },
      { status: 200, json: Buffer.from('{"ok":1}') } as const,
    ]) {
      expect((await openPipeline(() => answer).send('/v1/things', { as: 'writer' })).status).toBe(500)
    }
  })

  test('cookies are closed to scripts and to plain HTTP as asked', async () => {
    const answer = {
      status: 200,
      body: { ok: true },
      cookies: [
        { name: 's', value: 'a b', maxAgeSeconds: 9, isHttpOnly: true },
        { name: 'c', value: '', maxAgeSeconds: 0, isHttpOnly: false },
      ],
    }
    expect(
      (await openPipeline(() => answer, { isSecure: true }).send('/v1/things', { as: 'writer' })).headers['set-cookie'],
    ).toEqual([
      's=a%20b; Path=/; Max-Age=9; SameSite=Lax; HttpOnly; Secure',
      'c=; Path=/; Max-Age=0; SameSite=Lax; Secure',
    ])
    expect((await openPipeline(() => answer).send('/v1/things', { as: 'writer' })).headers['set-cookie']).not.toContain(
      'Secure',
    )
  })
})

describe('a request that waits', () => {
  const poll = route({
    ...SHARED,
    id: 'poll',
    method: 'GET',
    path: '/v1/poll',
    query: z.strictObject({ wait: z.coerce.number().optional() }),
  })
  const { writer } = CALLERS

  /** The request of the caller that `now` answers, which gets its answer after a minute, or when its signal aborts. */
  function open(now: () => Customer | undefined) {
    const clock = timedClock()
    let work = 'not started'
    const { service } = openPipeline(undefined, {
      clock,
      authenticate: async () => now(),
      endpoints: [
        publicEndpoint(poll, async ({ request }) => {
          work = 'waits'
          await clock.sleep(60_000, request.signal)
          work = 'done'
          return { status: 200, body: { ok: true } }
        }),
      ],
    })
    const { signal } = new AbortController()
    const ask = (target: string) => service({ method: 'GET', target, headers: {}, remoteAddress: '::1', signal })
    return { ask, clock, work: () => work }
  }

  test.each<[number, string, Customer | undefined]>([
    [401, 'the credential is not good any more', undefined],
    [403, 'the role has lost the permission', customer({ permissions: ['operate'] })],
    [403, 'the rights are others', customer({ ...writer, permissions: ['read'] })],
    [403, 'the credential acts for another account', customer({ ...writer, accountId: 'elsewhere' })],
  ])('ends within seconds with %i when %s', async (status, _what, later) => {
    let caller: Customer | undefined = writer
    const { ask, clock, work } = open(() => caller)
    const asked = ask('/v1/poll?wait=60')
    await clock.pass(5_000)
    expect(work()).toBe('waits')
    caller = later
    await clock.pass(5_000)
    expect(work()).toBe('done')
    expect((await asked).status).toBe(status)
  })

  test('answers nothing to a caller that lost its access a moment ago', async () => {
    let caller: Customer | undefined = writer
    const { ask, clock } = open(() => caller)
    const asked = ask('/v1/poll?wait=60')
    await clock.pass(59_999)
    caller = undefined
    await clock.pass(1)
    expect((await asked).status).toBe(401)
  })

  test('is not checked again when it does not wait, and once after a wait', async () => {
    let checks = 0
    const { ask, clock } = open(() => (checks++, writer))
    const asked = ask('/v1/poll')
    await clock.pass(60_000)
    expect([(await asked).status, checks]).toEqual([200, 1])
    const waited = ask('/v1/poll?wait=60')
    await clock.pass(60_000)
    expect((await waited).status).toBe(200)
    checks = 0
    await clock.pass(60_000)
    expect(checks).toBe(0)
  })
})

describe('a stream of events', () => {
  const follow = route({ ...SHARED, id: 'follow', method: 'GET', path: '/v1/follow', mediaType: 'text/event-stream' })

  /** The stream of the caller that `now` answers; `pass` lets five seconds pass. */
  async function open(now: () => Customer | undefined, signal = new AbortController().signal) {
    const waiting: (() => void)[] = []
    let given: AbortSignal | undefined
    const { service } = openPipeline(undefined, {
      clock: { ...movableClock(), after: (_milliseconds, work) => (waiting.push(work), () => void waiting.splice(0)) },
      authenticate: async () => now(),
      endpoints: [
        publicEndpoint(follow, async ({ request }) => {
          given = request.signal
          const events = createChannel<string>({
            sizeMaximum: 1e3,
            sizeOf: () => 1,
            signal: request.signal,
            onClosed: () => {},
          })
          events.push('event')
          return { status: 200, stream: events }
        }),
      ],
    })
    const response = await service({ method: 'GET', target: '/v1/follow', headers: {}, remoteAddress: '::1', signal })
    const chunks = (response.body as AsyncIterable<string>)[Symbol.asyncIterator]() // of a stream
    return {
      status: response.status,
      chunks,
      waiting,
      isOver: () => given?.aborted,
      async pass() {
        waiting.shift()?.()
        await new Promise(setImmediate)
      },
    }
  }
  const { writer } = CALLERS
  const other = (more: Partial<Customer>): Customer => customer({ token: writer!.token!, ...more }) // listed above

  test.each<[string, Customer | undefined]>([
    ['the credential is not good any more', undefined],
    ['the role has lost the permission', other({ permissions: ['operate'] })],
    ['the credential acts for another account', other({ accountId: 'elsewhere' })],
    ['the credential is of somebody else', other({ userId: 'somebody' })],
  ])('ends within seconds when %s', async (_what, later) => {
    let caller: Customer | undefined = writer
    const stream = await open(() => caller)
    expect(stream.status).toBe(200)
    await stream.pass()
    expect(stream.isOver()).toBe(false)
    caller = later
    await stream.pass()
    expect(stream.isOver()).toBe(true)
    expect(stream.waiting).toEqual([])
  })

  test('continues while nobody can say who calls, and asks again', async () => {
    let isDown = false
    const stream = await open(() => {
      if (isDown) throw new Error('the database does not answer')
      return writer
    })
    isDown = true
    await stream.pass()
    expect(stream.isOver()).toBe(false)
    expect(stream.waiting.length).toBe(1)
  })

  test('asks nothing once it is over', async () => {
    const gone = new AbortController()
    const [left, read] = [await open(() => writer, gone.signal), await open(() => writer)]
    gone.abort()
    expect(left.waiting).toEqual([])
    await read.chunks.next()
    await read.chunks.return?.()
    expect(read.waiting).toEqual([])
  })
})

test.each([101, 170_000])(
  'a body that is nested %i levels deep is refused without an error in the log',
  async (levels) => {
    const errors: string[] = []
    const { send } = openPipeline(undefined, { log: { ...silentLog, error: (message) => void errors.push(message) } })
    for (const body of ['['.repeat(levels) + ']'.repeat(levels), '{"a":'.repeat(levels) + '1' + '}'.repeat(levels)]) {
      const refused = await send('/v1/things', { method: 'POST', as: 'writer', body })
      expect([refused.status, refused.json.detail]).toEqual([400, 'The body is nested deeper than 100 levels.'])
    }
    expect(errors).toEqual([])
  },
)

test.each([
  ['a store that is away', new Unavailable('the store'), 503, []],
  ['a bug', new TypeError('a bug'), 500, ['request failed']],
] as const)('%s fails the request, and an error in the log is a fault', async (_what, error, status, expected) => {
  const errors: string[] = []
  const log = { ...silentLog, error: (message: string) => void errors.push(message) }
  const { send } = openPipeline(() => Promise.reject(error), { log })
  expect((await send('/v1/things', { method: 'POST', as: 'writer', body: '{"name":"one"}' })).status).toBe(status)
  expect(errors).toEqual(expected)
})
