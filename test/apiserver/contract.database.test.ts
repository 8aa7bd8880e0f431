/** What must hold for every route, by a loop over the list of routes: a new one that forgets it fails here by itself.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Route } from '../../kit/http/route.ts'
import { ROUTES } from '../../resources/index.ts'
import { useDatabase } from '../database.ts'
import { type Cloud, openCloud, type Person, type Reply } from './cloud.ts'
import { makeSamples } from './samples.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let stranger: Person
let viewer: Person
let unverified: Person
let writing = ''
let reading = ''
/** Real ids of the owner, by the noun of the path. */
let ids: Readonly<Record<string, string>> = {}

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  stranger = await cloud.signUp('stranger@example.com')
  viewer = await cloud.join(owner.accountId, 'viewer@example.com', 'viewer')
  unverified = await cloud.signUp('unverified@example.com', { isVerified: false })
  writing = await owner.token('read_write')
  reading = await owner.token('read')
  ids = await makeSamples({ cloud, owner })
})
afterAll(() => cloud.close())

/** What is within the object of a path; nothing has it. */
const PART = 'tiny'
const PARAMETER = /\{\w+\}/g
/** With the owner's own ids. A noun without one would prove nothing: its loop over foreign ids found none anyway. */
const pathOf = (route: Route): string =>
  route.path
    .replace(/\/([a-z-]+)\/\{\w+\}/, (_all, noun: string) => {
      const id = ids[noun]
      if (id === undefined)
        throw new Error(`${route.id} needs an object of the owner: make one of ${noun} in the sample.ts of its noun`)
      return `/${noun}/${id}`
    })
    .replaceAll(PARAMETER, PART)
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const isUnsafe = (route: Route): boolean => route.method !== 'GET'
const isPublic = (route: Route): boolean => route.credentials.includes('public')
const takes = (route: Route, credential: 'token' | 'session'): boolean => route.credentials.includes(credential)
/** A body that any schema refuses, so that no loop changes anything. */
const NONSENSE = { body: { '\u2026': true } }
const routes = (choose: (route: Route) => boolean): [string, Route][] =>
  ROUTES.filter((route) => route.audience === 'customer' && choose(route)).map((route) => [route.id, route])

function expectProblem(reply: Reply, status: number): void {
  expect(reply.body, reply.text).toMatchObject({
    type: 'about:blank',
    title: expect.any(String),
    status,
    detail: expect.any(String),
  })
  expect(reply.status).toBe(status)
  expect(reply.headers['content-type']).toBe('application/problem+json')
  expect(reply.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
}

describe('without a credential, and with ones that are not good: 401 and no entry', () => {
  test.each(routes((route) => !isPublic(route)))('%s', async (_id, route) => {
    for (const headers of [
      {},
      bearer('svccloud_w_nonsense'),
      bearer(''),
      { cookie: 'svccloud_session=nonsense' },
      bearer('a b'),
    ]) {
      const reply = await cloud.send(route.method, pathOf(route), { headers, ...(isUnsafe(route) ? NONSENSE : {}) })
      expectProblem(reply, 401)
      expect(await cloud.auditOf(reply)).toEqual([])
    }
  })
})

describe('a session without the CSRF header: 403, denied', () => {
  test.each(routes((route) => isUnsafe(route) && takes(route, 'session')))('%s', async (_id, route) => {
    for (const csrf of [undefined, 'forged']) {
      const reply = await owner.send(route.method, pathOf(route), { ...NONSENSE, headers: { 'x-csrf-token': csrf } })
      expectProblem(reply, 403)
      expect(await cloud.auditOf(reply)).toMatchObject(
        route.audit === null ? [] : [{ action: route.audit, outcome: 'denied' }],
      )
    }
  })
})

describe('a token on a session-only route: 403 for every scope', () => {
  test.each(routes((route) => !takes(route, 'token') && !isPublic(route)))('%s', async (_id, route) => {
    const reply = await cloud.send(route.method, pathOf(route), {
      headers: bearer(writing),
      ...(isUnsafe(route) ? NONSENSE : {}),
    })
    expectProblem(reply, 403)
  })
})

describe('a read-only token on a change: 403, denied, exactly one entry', () => {
  test.each(routes((route) => isUnsafe(route) && takes(route, 'token') && route.permission !== null))(
    '%s',
    async (_id, route) => {
      const reply = await cloud.send(route.method, pathOf(route), { headers: bearer(reading), ...NONSENSE })
      expectProblem(reply, 403)
      expect(await cloud.auditOf(reply)).toMatchObject([{ action: route.audit, outcome: 'denied' }])
    },
  )
})

describe('a read-only token on a credential read: 403 with its own reason, denied', () => {
  test.each(routes((route) => route.isCredentialRead))('%s', async (_id, route) => {
    const reply = await cloud.send(route.method, pathOf(route), { headers: bearer(reading) })
    expectProblem(reply, 403)
    expect(reply.body['reason']).toBe('read_only_token_cannot_read_credentials')
    expect(await cloud.auditOf(reply)).toMatchObject([{ action: route.audit, outcome: 'denied' }])
  })
})

describe('a role without the permission: 403', () => {
  test.each(
    routes(
      (route) => route.permission !== null && !['read', 'self'].includes(route.permission) && takes(route, 'session'),
    ),
  )('%s', async (_id, route) => {
    const reply = await viewer.send(route.method, pathOf(route), isUnsafe(route) ? NONSENSE : {})
    expectProblem(reply, 403)
  })
})

describe('an unverified address: 403 email_unverified', () => {
  test.each(routes((route) => route.requiresVerifiedEmail))('%s', async (_id, route) => {
    const reply = await unverified.send(route.method, pathOf(route), NONSENSE)
    expectProblem(reply, 403)
    expect(reply.body['reason']).toBe('email_unverified')
  })
})

describe("another account's ids: 404 and no entry", () => {
  test.each(routes((route) => /\{\w+\}/.test(route.path) && route.id !== 'get_template' && !isPublic(route)))(
    '%s',
    async (_id, route) => {
      const minimal = route.body === null ? {} : leastOf(route.body)
      const reply = await stranger.send(route.method, pathOf(route), isUnsafe(route) ? { body: minimal } : {})
      expectProblem(reply, 404)
      expect(await cloud.auditOf(reply)).toEqual([])
      const unknown = await stranger.send(
        route.method,
        route.path.replace(/\{\w+\}/, UNKNOWN_ID).replaceAll(PARAMETER, PART),
        isUnsafe(route) ? { body: minimal } : {},
      )
      expect({ ...unknown.body }).toEqual({ ...reply.body })
    },
  )
})

const UNKNOWN_ID = '00000000-0000-4000-8000-00000000dead'
/** The first is a name, and base64. */
const SAMPLES = ['tiny', UNKNOWN_ID, false, 1, '10.1.0.9', '1.36', []]

/** The required fields of a body, each with a sample that it takes. Throws for one that takes none of them. */
function leastOf(body: z.ZodType): object {
  if (!(body instanceof z.ZodObject)) throw new Error('a body is an object')
  const required = Object.entries(body.shape).filter(([, field]) => !field.safeParse(undefined).success)
  const least = required.map(([name, field]) => {
    const samples = [...(field instanceof z.ZodEnum ? field.options : []), ...SAMPLES]
    const value = samples.find((sample) => field.safeParse(sample).success)
    if (value === undefined) throw new Error(`${name} takes no sample: add one above`)
    return [name, value]
  })
  return Object.fromEntries(least)
}

/** Fields that are any object. */
const OBJECTS = ['set_preferences preferences']

describe('bodies that are not what the route takes: 400, 413, 415 and no entry', () => {
  const withBody = routes((route) => isUnsafe(route) && route.body !== null && takes(route, 'session'))
  test.each(withBody)('%s', async (_id, route) => {
    const path = pathOf(route)
    const replies = [
      [400, await owner.send(route.method, path, { raw: '{"broken":' })],
      [400, await owner.send(route.method, path, { raw: '[]' })],
      [400, await owner.send(route.method, path, { body: { unknown_field: 1 } })],
      [415, await owner.send(route.method, path, { body: {}, headers: { 'content-type': 'text/plain' } })],
      [413, await owner.send(route.method, path, { raw: `{"x":"${'x'.repeat(route.bodyBytesMaximum)}"}` })],
    ] as const
    for (const [status, reply] of replies) {
      expectProblem(reply, status)
      expect(await cloud.auditOf(reply)).toEqual([])
    }
  })

  test.each(withBody)('%s names a field of the wrong type', async (_id, route) => {
    if (!(route.body instanceof z.ZodObject)) return
    for (const field of Object.keys(route.body.shape)) {
      const wrong = OBJECTS.includes(`${route.id} ${field}`) ? 7 : { wrong: ['type'] }
      const reply = await owner.send(route.method, pathOf(route), { body: { [field]: wrong } })
      expectProblem(reply, 400)
      expect(
        reply.body['errors'].map((error: { field: string }) => error.field.split('.')[0]),
        field,
      ).toContain(field)
    }
  })
})

describe('queries that are not what the route takes: 400', () => {
  test.each(routes((route) => !isPublic(route) && route.method === 'GET'))('%s', async (_id, route) => {
    expectProblem(await owner.send('GET', `${pathOf(route)}?unknown_parameter=1`), 400)
  })
})

/** Reads of what no sample has, by the test that has it. */
const READ_ELSEWHERE: Readonly<Record<string, string>> = {
  list_object_storage_objects: 'buckets have a prefix: test/apiserver/nouns/object-storage/buckets.database.test.ts',
  get_kubernetes_node_pool: 'nodes need an image: test/apiserver/nouns/node-pool/node-pools.database.test.ts',
}

describe('reads of the owner succeed in the shape of their route', () => {
  test.each(
    routes(
      (route) => route.method === 'GET' && !isPublic(route) && !route.isCredentialRead && !(route.id in READ_ELSEWHERE),
    ),
  )('%s', async (_id, route) => {
    const query = new URLSearchParams(leastOf(route.query) as Record<string, string>) // samples of texts
    const reply = await owner.send('GET', `${pathOf(route)}?${query.toString()}`)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.headers['cache-control']).toBe('no-store')
  })
})

test('every change and every credential read of a signed-in caller has an audit action', () => {
  const silent = ROUTES.filter(
    (route) => (isUnsafe(route) || route.isCredentialRead) && route.audit === null && !isPublic(route),
  )
  expect(silent.map((route) => route.id)).toEqual(['send_mcp_message']) // what a message calls has its own
})
