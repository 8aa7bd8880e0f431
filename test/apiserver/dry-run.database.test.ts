/** Dry runs over every route: one that takes them answers as the request would and changes nothing, and any other route
 *  refuses them. The refusals of the nouns with changes are compared one by one in
 *  `test/changes/refusals.database.test.ts`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defined } from '../../domain/defined.ts'
import type { Problem } from '../../domain/problem.ts'
import { openApiDocument } from '../../kit/http/openapi.ts'
import type { Route } from '../../kit/http/route.ts'
import type { StepContext } from '../../kit/http/step.ts'
import { parseInput } from '../../kit/http/steps/parse.ts'
import { recordCurrentPrice } from '../../db/billing/index.ts'
import { ROUTES } from '../../resources/index.ts'
import { useDatabase } from '../database.ts'
import { askTwice, routeOf } from './ask-twice.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY, type Reply, type SendOptions } from './cloud.ts'
import { differenceOf, dumpOf } from './dump.ts'
import { makeSamples } from './samples.ts'

const ID = '00000000-0000-4000-8000-000000000000'
const changes = ROUTES.filter(({ method }) => method !== 'GET')
const named = (routes: readonly Route[]): [string, Route][] => routes.map((route) => [route.id, route])

describe('a request for a dry run is refused, and not carried out, on a route without them', () => {
  test.each(named(ROUTES.filter(({ takesDryRun }) => !takesDryRun)))('%s', async (_id, route) => {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
    // Only what the step reads.
    const context = {
      route,
      rawQuery: 'dry_run=true',
      rawParams: Object.fromEntries(names.map((name) => [name, ID])),
      incoming: { body: undefined },
      request: { header: () => undefined },
    } as unknown as StepContext
    const refusal: unknown = await Promise.resolve()
      .then(() => parseInput(route, undefined as never)?.(context))
      .catch((error: unknown) => error)
    expect(refusal).toMatchObject({ status: expect.toBeOneOf([400, 404]) })
    if ((refusal as Problem).status === 400)
      expect((refusal as Problem).members.errors).toContainEqual({
        field: 'dry_run',
        detail: `is not offered by this operation${route.noDryRun === null ? '' : `: ${route.noDryRun}`}`,
      })
  })
})

test('every change takes dry runs, or the document says why not', () => {
  const { paths = {} } = openApiDocument(ROUTES, { title: 'Cloud', description: '', version: '1', serverUrl: '/' })
  const listed = Object.values(paths).flatMap(
    (path) => Object.values(path ?? {}) as Readonly<Record<string, unknown>>[],
  )
  for (const { id, method, takesDryRun } of ROUTES)
    expect([id, listed.find(({ operationId }) => operationId === id)?.['x-no-dry-run']]).toEqual([
      id,
      method === 'GET' || takesDryRun ? undefined : expect.stringMatching(/^[a-z].{10,}[a-z]$/),
    ])
})

test('of the changes that programs may request, only these have no dry run', () => {
  const without = changes.filter(
    ({ takesDryRun, audience, credentials }) =>
      !takesDryRun && audience === 'customer' && credentials.includes('token'),
  )
  expect(without.map(({ id }) => id).sort()).toEqual([
    'create_object_storage_bucket',
    'create_payment_setup_session',
    'delete_object_storage_bucket',
    'delete_object_storage_object',
    'enable_object_storage',
    'presign_object_storage_object',
    'redeem_coupon',
    'remove_payment_method',
    'revoke_own_token',
    'rotate_database_credentials',
    'rotate_object_storage_keys',
    'send_mcp_message',
    'send_server_console_input',
    'set_default_payment_method',
  ])
})

const database = useDatabase()
let cloud: Cloud
let owner: Person
let ids: Readonly<Record<string, string>> = {}

beforeAll(async () => {
  cloud = await openCloud(database.db)
  await recordCurrentPrice(cloud.db, { resourceType: 'server', plan: 'tiny' }, 100_000, new Date())
  const person = await cloud.signUp('owner@example.com')
  owner = { ...person, send: (method, path, options) => twice(person, method, path, options) }
  ids = await makeSamples({ cloud, owner }, { isOneByOne: true })
})
afterAll(() => cloud.close())

/** As a dry run first, which changes nothing and is answered as the request is. */
async function twice(person: Person, method: string, path: string, options?: SendOptions): Promise<Reply> {
  if (path.includes('dry_run') || routeOf(method, path)?.takesDryRun !== true) return person.send(method, path, options)
  const real = await askTwice({ cloud, person }, { method, path, ...defined({ options }) })
  const { operation } = real.body as { readonly operation?: { readonly resource: { readonly id: string } } }
  if (operation !== undefined)
    expect(operation.resource, real.text).toMatchObject({
      type: expect.any(String),
      id: expect.any(String),
      name: expect.toBeOneOf([null, expect.any(String)]),
    })
  return real
}

test('samples of every noun were made after dry runs of the same requests', () => {
  expect(Object.keys(ids).length).toBeGreaterThan(10)
})

/** Ids of what the path is within, by its words, as long as the samples are there. */
async function idsWithin(path: string): Promise<Readonly<Record<string, string>>> {
  const read = async (of: string) => (await owner.send('GET', of)).body
  if (path.includes('/backends/')) {
    const [backend] = (await read(`/v1/load-balancers/${ids['load-balancers']}`))['load_balancer'].backends
    return { backends: backend.name, members: backend.members[0].id }
  }
  if (!path.includes('/deliveries/')) return {}
  return { deliveries: (await read(`/v1/account/webhooks/${ids['webhooks']}/deliveries`))['items'][0].id }
}

/** The example, of the zone, the plan and the resources that there are. */
function withSamples(example: object): object {
  const { networks = '', servers = '' } = ids
  const known = { zone: cloud.zone, plan: 'tiny', network_id: networks, network_ids: [networks], server_id: servers }
  return { ...example, ...Object.fromEntries(Object.entries(known).filter(([name]) => name in example)) }
}

/** Routes that answer 404 on samples: nothing but the address is compared there. */
const FINDS_NOTHING: Readonly<Record<string, string>> = {
  remove_load_balancer_certificate: 'a certificate needs a domain, which the example does not have',
  update_kubernetes_node_pool: 'controllers make node pools, and none run here; refusals/node-pool.ts has its rows',
  delete_kubernetes_node_pool: 'controllers make node pools, and none run here; refusals/node-pool.ts has its rows',
  detach_server_network: 'agents report interfaces, and none run here; refusals/server.ts has its rows',
  detach_router_network: 'a router that is being created takes no network; refusals/router.ts has its rows',
}

const taking = changes.filter(({ takesDryRun }) => takesDryRun)
describe('every route that takes dry runs, with its example, on samples', () => {
  // What deletes comes last, so that the others find something.
  const order = [
    ...taking.filter(({ isDestructive }) => !isDestructive),
    ...taking.filter((each) => each.isDestructive),
  ]
  test.each(named(order))('%s', async (id, { method, path, example }) => {
    const all = { ...ids, ...(await idsWithin(path)) }
    const real = path.replaceAll(/\/([a-z-]+)\/\{\w+\}/g, (_all, noun: string) => `/${noun}/${all[noun] ?? ID}`)
    const body = example === null ? undefined : withSamples(example as object) // of a body
    const reply = await owner.send(method, real, defined({ body }))
    expect(reply.status === 404, `${reply.text}`).toBe(id in FINDS_NOTHING)
  })
})

test('a new server: price, quotas, manifest, and no object', async () => {
  await owner.send('POST', '/v1/ssh-keys', { body: { name: 'mine', public_key: PUBLIC_KEY } })
  const server = { zone: cloud.zone, hostname: 'tried', plan: 'tiny', template: 'tiny-linux' }
  const { body } = await owner.send('POST', '/v1/servers?dry_run=true', { body: server })
  expect(body).toMatchObject({
    dry_run: true,
    price: { monthly_millicents: 100_000, hourly_millicents: 137 },
    would: { server: { hostname: 'tried', state: 'creating' }, operation: { kind: 'server.create' } },
    manifest: { kind: 'Server', spec: { hostname: 'tried', plan: 'tiny', sshKeys: [PUBLIC_KEY] } },
  })
  expect(body['would_claim']).toContainEqual(expect.objectContaining({ name: 'servers', amount: 1 }))
  expect(body['manifest'].spec).not.toHaveProperty('operation')
})

test('an account that never had anything: its namespace is not made', async () => {
  const stranger = await cloud.signUp('stranger@example.com')
  const before = await dumpOf(cloud)
  const reply = await stranger.send('POST', '/v1/networks?dry_run=true', { body: { zone: cloud.zone, name: 'first' } })
  expect(reply).toMatchObject({ status: 200, body: { would: { network: { name: 'first' } } } })
  expect(differenceOf(before, await dumpOf(cloud))).toEqual([])
})

test('an Idempotency-Key of a dry run is free for the request', async () => {
  const headers = { 'idempotency-key': '11111111-1111-4111-8111-111111111111' }
  const body = { zone: cloud.zone, name: 'keyed' }
  const authorization = `Bearer ${await owner.token('read_write')}`
  const send = (path: string) => cloud.send('POST', path, { body, headers: { ...headers, authorization } })
  expect(await send('/v1/networks?dry_run=true')).toMatchObject({ status: 200 })
  expect(await send('/v1/networks')).toMatchObject({ status: 202 })
  expect((await send('/v1/networks')).headers).toMatchObject({ 'idempotent-replayed': 'true' })
})
