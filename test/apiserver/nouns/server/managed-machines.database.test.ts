/** What customers see of managed machines: nothing, but for nodes of clusters, which they switch on and off and delete,
 *  and do not change. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  DATABASE_TEMPLATE,
  KUBERNETES_NODE_TEMPLATE,
  MANAGED_TEMPLATE,
} from '../../../../domain/managed-machine/rules.ts'
import { accountNamespace, ROUTES } from '../../../../resources/index.ts'
import { Template } from '../../../../resources/catalog/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { recordOperation } from '../../../../db/operation/index.ts'
import { useDatabase } from '../../../database.ts'
import { until } from '../../../eventually.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'

const database = useDatabase()
const ID = 'machine-6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a11'
const NODE = 'machine-node-6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a12'
const OPERATION = '019a1ff5-08ad-720c-b721-970d86569b33'
const OF_NODE = '019a1ff5-08ad-720c-b721-970d86569b34'
const [ENDED, ENDED_OF_NODE] = ['019a1ff5-08ad-720c-b721-970d86569b35', '019a1ff5-08ad-720c-b721-970d86569b36']
let cloud: Cloud
let ada: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  await ada.send('POST', '/v1/ssh-keys', { body: { name: 'laptop', public_key: PUBLIC_KEY } })
  const namespace = accountNamespace(ada.accountId)
  const wanted = { zone: cloud.zone, hostname: 'mine', plan: 'tiny', template: 'tiny-linux' }
  expect((await ada.send('POST', '/v1/servers', { body: wanted })).status).toBe(202)
  const spec = {
    hostname: 'edge',
    title: '',
    zone: cloud.zone,
    plan: 'tiny',
    template: MANAGED_TEMPLATE,
    labels: { a: 'b' },
    desiredPower: 'running',
    sshKeys: [],
    haPolicy: 'restart',
    migrationPolicy: 'default',
    publicIpv4: false,
    metadataEnabled: false,
    isProtected: false,
  } satisfies Partial<ServerSpec>
  for (const [name, managedBy] of [
    [ID, 'edge:e'],
    [NODE, 'node_pool:p'],
  ] as const)
    await cloud.admin.create(Server, { metadata: { name, namespace }, spec: { ...spec, managedBy } })
  await cloud.admin.create(Storage, {
    metadata: { name: ID, namespace },
    spec: {
      zone: cloud.zone,
      title: '',
      sizeGibibytes: 2,
      tier: 'standard',
      isBoot: true,
      serverId: ID,
      labels: {},
      isProtected: false,
    },
  })
  const createdAt = '2026-01-01T00:00:00Z'
  const operation = { kind: 'server.create', actor: 'system:controllers', requestId: 'r', createdAt } as const
  for (const [name, id] of [
    [OPERATION, ID],
    [OF_NODE, NODE],
  ] as const)
    await cloud.admin.create(Operation, {
      metadata: { name, namespace },
      spec: { ...operation, target: { type: 'server', id }, deadlineAt: '2026-01-01T01:00:00Z', stepCount: 1 },
    })
  for (const [id, target] of [
    [ENDED, ID],
    [ENDED_OF_NODE, NODE],
  ] as const)
    await recordOperation(database.db, ada.accountId, {
      ...operation,
      id,
      target: { type: 'server', id: target },
      deadlineAt: createdAt,
      finishedAt: createdAt,
      status: 'succeeded',
      step: '',
      stepIndex: 1,
      stepCount: 1,
      error: '',
      startedAt: null,
      events: [],
    })
  const [key, node, ...operations] = [
    { namespace, name: ID },
    { namespace, name: NODE },
    { namespace, name: OPERATION },
    { namespace, name: OF_NODE },
  ]
  await until(
    'the caches to have them',
    () => [
      cloud.caches.of(Server).get(key),
      cloud.caches.of(Server).get(node),
      cloud.caches.of(Storage).get(key),
      ...operations.map((one) => cloud.caches.of(Operation).get(one)),
    ],
    (found) => found.every((object) => object !== undefined),
  )
})
afterAll(() => cloud.close())

test('a node of a cluster is seen, and nothing says of whom it is', async () => {
  const { items } = (await ada.send('GET', '/v1/servers')).body as { items: { id: string }[] }
  expect(items.find(({ id }) => id === NODE)).toMatchObject({ hostname: 'edge', managed_by: null })
  expect(await ada.send('GET', `/v1/servers/${NODE}`)).toMatchObject({ status: 200, body: { server: { id: NODE } } })
})

const POWER = ['start_server', 'stop_server', 'restart_server']
const CHANGES = ROUTES.filter(
  ({ id, audience, method, path }) =>
    audience === 'customer' &&
    method !== 'GET' &&
    /^\/v1\/servers\/\{\w+\}/.test(path) &&
    ![...POWER, 'delete_server'].includes(id),
)
test.each(CHANGES.map((route) => [route.method, route.path, route] as const))(
  '%s %s of a node is refused, and names its pool',
  async (method, path, { body: shape, example }) => {
    const body = shape === null ? {} : { body: (example ?? {}) as object }
    const reply = await ada.send(method, path.replaceAll(/\{\w+\}/g, NODE), body)
    expect([reply.status, reply.body['reason'], reply.body['resource']], JSON.stringify(reply.body)).toEqual([
      409,
      'in_use',
      { type: 'node_pool', id: 'p' },
    ])
  },
)

test('a node is stopped, started, restarted and deleted, where its state allows it', async () => {
  const send = async (method: string, rest = '') => {
    const reply = await ada.send(method, `/v1/servers/${NODE}${rest}`)
    return [reply.status, reply.body['reason'] ?? reply.body['operation']?.kind]
  }
  const key = { namespace: accountNamespace(ada.accountId), name: NODE }
  const become = async (state: 'started' | 'stopped') => {
    await cloud.admin.patch(Server, key, { spec: { operation: null }, status: { state } })
    await cloud.admin.patch(Server, key, { status: { state } }, 'status')
  }
  await become('started')
  expect(await send('POST', '/stop')).toEqual([202, 'server.stop'])
  await become('started')
  expect(await send('POST', '/restart')).toEqual([202, 'server.restart'])
  await become('stopped')
  expect(await send('POST', '/start')).toEqual([202, 'server.start'])
  await become('stopped')
  expect(await send('DELETE')).toEqual([202, 'server.delete'])
})

test('lists have neither a machine, nor its disk, nor its operations', async () => {
  const itemsOf = async (path: string) =>
    (await ada.send('GET', path)).body.items as { id: string; hostname?: string }[]
  expect(
    (await itemsOf('/v1/servers')).map(({ id, hostname }) => (id === NODE ? 'node' : hostname)).toSorted(),
  ).toEqual(['mine', 'node'])
  expect((await itemsOf('/v1/servers?label=a=b')).map(({ id }) => id)).toEqual([NODE])
  expect((await itemsOf('/v1/storages')).filter(({ id }) => id === ID)).toEqual([])
  const listed = (await itemsOf('/v1/operations')).map(({ id }) => id)
  const ofMachines = [OPERATION, OF_NODE, ENDED, ENDED_OF_NODE]
  expect(ofMachines.filter((id) => listed.includes(id))).toEqual([OF_NODE, ENDED_OF_NODE])
})

test.each([OF_NODE, ENDED_OF_NODE])('operation %s of a node is read', async (id) =>
  expect(await ada.send('GET', `/v1/operations/${id}`)).toMatchObject({
    status: 200,
    body: { operation: { id, server_id: NODE } },
  }),
)

/** Every route of a server or a storage. What is more of its path is found nowhere either. */
const OF_ONE = ROUTES.filter(
  ({ audience, path }) => audience === 'customer' && /^\/v1\/(servers|storages)\/\{\w+\}/.test(path),
)
test.each(OF_ONE.map((route) => [route.method, route.path, route] as const))(
  '%s %s is not found of a machine',
  async (method, path, { body: shape, example }) => {
    const body = shape === null ? {} : { body: (example ?? {}) as object }
    const reply = await ada.send(method, path.replaceAll(/\{\w+\}/g, ID), body)
    expect([reply.status, reply.body['reason'] ?? ''], JSON.stringify(reply.body)).toEqual([404, ''])
  },
)

test.each([
  ['GET', `/v1/operations/${OPERATION}`, undefined],
  ['GET', `/v1/operations/${ENDED}`, undefined],
  ['POST', `/v1/operations/${OPERATION}/cancel`, undefined],
  ['POST', '/v1/storages', { source_storage_id: ID }],
  ['POST', '/v1/custom-images', { title: 'stolen', source_storage_id: ID }],
] as const)('%s %s is not found for what is of a machine', async (method, path, more) => {
  const body = more && { body: { zone: cloud.zone, ...more } }
  const reply = await ada.send(method, path, body)
  expect(reply.status, JSON.stringify(reply.body)).toBe(404)
})

test.each([MANAGED_TEMPLATE, DATABASE_TEMPLATE, KUBERNETES_NODE_TEMPLATE] as const)(
  'nobody makes a server of their template %s',
  async (template) => {
    const { spec } = (await cloud.admin.get(Template, { name: MANAGED_TEMPLATE })) ?? {}
    if (spec === undefined) throw new Error('there is no template')
    await cloud.admin.apply(Template, { metadata: { name: template }, spec: { ...spec, image: { built: template } } })
    await until(
      'the template',
      () => cloud.caches.of(Template).get({ name: template }),
      (found) => found !== undefined,
    )
    const body = { zone: cloud.zone, hostname: 'sly', plan: 'tiny', template }
    expect(await ada.send('POST', '/v1/servers', { body })).toMatchObject({
      status: 400,
      body: { errors: [{ field: 'template' }] },
    })
  },
)
