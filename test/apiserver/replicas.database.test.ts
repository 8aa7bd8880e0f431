/** A second replica whose cache has stopped following: what a client wrote through the first one it shows all the same.
 */
import { randomUUID } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { createApp } from '../../apiserver/app.ts'
import { type Caches, openCaches } from '../../kit/kube/caches.ts'
import { KINDS } from '../../apiserver/nouns.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Resource } from '../../resources/kit/define.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Network } from '../../resources/network/index.ts'
import { Operation } from '../../resources/operation/index.ts'
import type { Store } from '../../kit/kube/store.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { silentLog as log } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import { useDatabase } from '../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from './cloud.ts'
import { documented } from '../contract/document-check.ts'

const database = useDatabase()
const stop = new AbortController()
let cloud: Cloud
let ada: Person
let caches: Caches
/** What the second replica answers. */
let ask: <Body>(target: string) => Promise<Body>

beforeAll(async () => {
  cloud = await openCloud(database.db, { hasPeers: true })
  ada = await cloud.signUp('ada@example.com')
  await ada.send('POST', '/v1/ssh-keys', { body: { name: 'laptop', public_key: PUBLIC_KEY } })
  const token = await ada.token('read_write')

  const deaf: Store = {
    ...cloud.admin,
    watch: async function* (_type, { signal }) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    },
  }
  const metrics = openRegistry({ isProcessWide: false })
  caches = openCaches({ store: deaf, clock, random, log, registry: metrics })
  const peer = await createApp({
    store: deaf,
    caches,
    db: database.db,
    clock,
    random,
    log,
    metrics,
    publicUrl: 'http://127.0.0.1:8080',
    canSendMail: true,
    checkAnswers: true,
    hasPeers: true,
    agents: {
      async *follow() {
        throw new Error('there are no hosts here')
      },
      write: async () => 'unreachable',
    },
  })
  caches.start(stop.signal)
  await caches.ready()
  ask = async <Body>(target: string) => {
    const { status, body } = await documented(
      'customer',
      peer.customers,
    )({
      method: 'GET',
      target,
      remoteAddress: '192.0.2.7',
      signal: stop.signal,
      headers: { authorization: `Bearer ${token}` },
    })
    expect(status, target).toBe(200)
    // a test asks for what the route answers
    return JSON.parse(body instanceof Uint8Array ? Buffer.from(body).toString() : String(body)) as Body
  }
})
afterAll(async () => {
  stop.abort()
  await cloud?.close()
})

interface Listed {
  readonly items: readonly { readonly id: string; readonly title: string; readonly state: string }[]
}
const list = async () => (await ask<Listed>('/v1/servers')).items

test('a client lists at one replica what it wrote at another', async () => {
  expect(await list()).toEqual([])
  const make = async (hostname: string) =>
    String(
      (
        await ada.send('POST', '/v1/servers', {
          body: { zone: cloud.zone, hostname, plan: 'tiny', template: 'tiny-linux' },
        })
      ).body['server'].id,
    )
  const [first, second] = [await make('first'), await make('second')]
  expect((await list()).map(({ id }) => id).sort()).toEqual([first, second].sort())
  expect((await ada.send('PATCH', `/v1/servers/${first}`, { body: { title: 'New' } })).status).toBe(200)
  expect((await list()).find(({ id }) => id === first)).toMatchObject({ title: 'New' })
})

/** Kinds that accounts see, each with an object of the examples. */
const SEEN = KINDS.flatMap(({ resource }) => {
  const { kind, scope, customers } = resource as Resource // every kind of a noun is one
  return scope === 'Cluster' || customers === 'none' || kind === 'Operation' ? [] : [{ kind, resource }]
})
const EXAMPLES = globSync('examples/**/*.yaml').flatMap((file) =>
  parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as KubeObject),
)

/** An operation of the account that has ended just now, as controllers leave it. */
async function ended(id: string): Promise<void> {
  const key = { namespace: accountNamespace(ada.accountId), name: id }
  const now = clock.now().toISOString()
  await cloud.admin.create(Operation, {
    metadata: key,
    spec: {
      kind: 'server.start',
      target: { type: 'server', id: 'gone' },
      actor: 'operator',
      requestId: 'r',
      createdAt: now,
      deadlineAt: now,
      stepCount: 1,
    },
  })
  const status = { status: 'succeeded', step: 'started', stepIndex: 1, error: '', startedAt: now, finishedAt: now }
  await cloud.admin.patch(Operation, key, { status }, 'status')
}
const READERS = {
  'another replica': async (id: string) => (await ada.send('GET', `/v1/operations/${id}`)).body['operation'],
  'this replica': async (id: string) =>
    (await ask<{ operation: { status: string } }>(`/v1/operations/${id}`)).operation,
  'a list of another replica': async (id: string) =>
    (await ada.send('GET', `/v1/operations?id=${id}`)).body['items'][0],
} as const

describe.each(Object.entries(READERS))('once %s has shown the end of an operation', (reader, read) => {
  test.each(SEEN)('what it changed of a $kind is there for all lists and reads', async ({ kind, resource }) => {
    const cache = caches.known(resource)
    if (cache === undefined) return // the API reads it from the database
    const spec = EXAMPLES.find((example) => example.kind === kind)?.spec
    if (spec === undefined) throw new Error(`there is no example of ${kind}`)
    const key = { namespace: accountNamespace(ada.accountId), name: randomUUID() }
    const shown = async () => {
      const id = randomUUID()
      await ended(id)
      await expect.poll(async () => (await read(id))?.status, { message: reader }).toBe('succeeded')
      await ask('/v1/servers')
      return cache.get(key)
    }
    const made = await cloud.admin.create(resource, { metadata: key, spec })
    expect((await shown())?.metadata.resourceVersion).toBe(made.metadata.resourceVersion)
    await cloud.admin.delete(resource, key)
    expect(await shown()).toBeUndefined()
  })
})

test('once another replica has sent a reset, lists have everything that is not sent after it', async () => {
  const token = await ada.token('read')
  const name = randomUUID()
  const spec = EXAMPLES.find(({ kind }) => kind === 'Network')?.spec
  const made = await cloud.admin.create(Network, {
    metadata: { namespace: accountNamespace(ada.accountId), name },
    spec,
  })
  // the other replica has seen it before the stream begins
  await expect.poll(() => cloud.caches.of(Network).get(made.metadata)?.metadata.resourceVersion).toBeDefined()
  const leave = new AbortController()
  const { body } = await cloud.app.customers({
    method: 'GET',
    target: '/v1/changes',
    headers: { authorization: `Bearer ${token}` },
    remoteAddress: '192.0.2.9',
    signal: leave.signal,
  })
  for await (const text of body as AsyncIterable<string>) {
    expect(text).toContain('event: reset')
    break
  }
  leave.abort()
  expect((await ask<Listed>('/v1/networks')).items.map(({ id }) => id)).toContain(name)
  await cloud.admin.delete(Network, made.metadata)
})

test('what views derive from other kinds is of the same moment', async () => {
  const namespace = accountNamespace(ada.accountId)
  const make = (kind: string, spec: object) => {
    const resource = KINDS.find((each) => each.resource.kind === kind)?.resource
    const example = EXAMPLES.find((each) => each.kind === kind)?.spec as object
    if (resource === undefined) throw new Error(`there is no ${kind}`)
    const name = randomUUID()
    return cloud.admin.create(resource, { metadata: { namespace, name }, spec: { ...example, ...spec } })
  }
  const network = (await make('Network', {})).metadata.name
  const router = (await make('Router', { networkIds: [network] })).metadata.name
  const edge = (await make('Edge', { networkId: network })).metadata.name
  await make('Server', { networks: [{ networkId: network }] })
  const storage = (await make('Storage', {})).metadata.name
  await make('Snapshot', { storageId: storage })
  const id = randomUUID()
  await ended(id)
  expect((await ada.send('GET', `/v1/operations/${id}`)).body['operation']).toMatchObject({ status: 'succeeded' })
  const derived = { router_id: router, edge_id: edge, server_count: 1 }
  expect(await ask(`/v1/networks/${network}`)).toMatchObject({ network: derived })
  expect(await ask('/v1/networks')).toMatchObject({ items: [derived] })
  expect(await ask(`/v1/storages/${storage}`)).toMatchObject({ storage: { snapshot_count: 1 } })
})
