import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { attachStorage, claimStorage, releaseStorage } from '../../../../db/storage/index.ts'
import { defined } from '../../../../domain/defined.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { useDatabase } from '../../../database.ts'
import { progressOf } from '../../../progress.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'
import { setQuotas } from '../../../accounts.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person
const SECOND = 'node-a2'
const OTHER_ZONE = 'eu-1-b'

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
  await ada.send('POST', '/v1/ssh-keys', { body: { name: 'laptop', public_key: PUBLIC_KEY } })
  await setQuotas(cloud.db, 100, { accountId: ada.accountId, name: 'servers' })
  await cloud.admin.create(Zone, {
    metadata: { name: OTHER_ZONE },
    spec: { displayName: 'B', region: 'eu-1', isClosed: false, capabilities: [] },
  })
  await openNode(true)
  await openNode(true, OTHER_ZONE)
})
afterAll(() => cloud.close())

const openNode = (isSchedulable: boolean, zone = cloud.zone) =>
  mirrorNode(cloud.db, {
    node: zone === cloud.zone ? SECOND : `${zone}-node`,
    zone,
    rack: 'rack-1',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable,
    total: { cores: 64, memoryMebibytes: 262_144, storageGibibytes: 1_024 },
  })
const keyOf = (id: string) => ({ namespace: accountNamespace(ada.accountId), name: id })
const stored = async (id: string) => {
  const server = await cloud.admin.get(Server, keyOf(id))
  if (server?.spec.operation === undefined) throw new Error('no such server')
  return { ...server, operation: server.spec.operation }
}

/** What the controller would report: how far the operation is, and the move with it. */
async function report(
  id: string,
  state: 'started' | 'stopped',
  status: 'running' | 'succeeded',
  migration?: object,
): Promise<void> {
  const { operation } = await stored(id)
  const { finishedAt, ...running } = progressOf(operation, {
    status,
    step: 'reserved',
    stepCount: 4,
    startedAt: operation.requestedAt,
  })
  cloud.caches.of(Server).apply(
    await cloud.admin.patch(
      Server,
      keyOf(id),
      {
        status: {
          state,
          memoryMebibytes: 1_024,
          storageGibibytes: 3,
          operation: { ...running, ...(status === 'running' ? {} : { finishedAt }) },
          ...defined({ migration }),
        },
      },
      'status',
    ),
  )
  await cloud.admin.patch(
    Operation,
    { ...keyOf(id), name: operation.id },
    { status: { status, step: 'reserved', stepIndex: 0, error: '' } },
    'status',
  )
}

let made = 0
async function createSettled(state: 'started' | 'stopped'): Promise<string> {
  const { body } = await ada.send('POST', '/v1/servers', {
    body: { zone: cloud.zone, hostname: `web-${(made += 1)}`, plan: 'tiny', template: 'tiny-linux' },
  })
  await report(body.server.id, state, 'succeeded')
  return body.server.id
}
const move = (id: string, body: object = {}, by: Person = ada) => by.send('POST', `/v1/servers/${id}/move`, { body })

const FIGURES = {
  sourceNode: 'node-a1',
  targetNode: SECOND,
  phase: 'transferring',
  attempt: 2,
  iteration: 3,
  transferredBytes: 10,
  totalBytes: 100,
  dirtyBytesPerSecond: 7,
  downtimeMilliseconds: 0,
  detail: '',
  reportedAt: '2026-01-01T12:00:00.000Z',
}

describe('move_server', () => {
  test.each(['started', 'stopped'] as const)('moves a %s server as it is, with time for its size', async (state) => {
    const id = await createSettled(state)
    const reply = await move(id)
    expect(reply.body).toMatchObject({ operation: { status: 'pending' } })
    expect(reply.body.operation).toMatchObject({
      kind: state === 'started' ? 'server.migrate' : 'server.move',
      status: 'pending',
      server_id: id,
      step: 'reserved',
      step_count: 4,
    })
    expect(Date.parse(reply.body.operation.deadline_at) - Date.parse(reply.body.operation.created_at)).toBe(
      (60 + 2 * 4) * 60_000,
    )
    expect(await cloud.auditOf(reply)).toMatchObject([{ action: 'server.move', outcome: 'success', resource_id: id }])
    expect((await move(id)).body).toMatchObject({ status: 409, reason: 'operation_in_progress' })
  })

  test('a zone without another node that could take it is 503, and nothing is held', async () => {
    await openNode(false)
    const id = await createSettled('started')
    expect((await move(id)).body).toMatchObject({ status: 503, reason: 'no_capacity' })
    await openNode(true)
    expect(await cloud.db.selectFrom('placement_target').selectAll().execute()).toEqual([])
    expect((await stored(id)).operation.kind).toBe('server.create')
  })

  test('its own zone, named, is any other node of it', async () => {
    const id = await createSettled('started')
    expect((await move(id, { zone: cloud.zone })).body.operation).toMatchObject({ kind: 'server.migrate' })
    expect((await stored(id)).operation.arguments ?? {}).toEqual({})
  })

  test("another account's server is not there", async () => {
    expect((await move(await createSettled('started'), {}, bob)).status).toBe(404)
  })
})

describe('move_server to another zone', () => {
  const leave = (id: string, zone = OTHER_ZONE) => move(id, { zone })

  test('is for a stopped server, which keeps its zone until it is there', async () => {
    const id = await createSettled('stopped')
    const reply = await leave(id)
    expect(reply.body.operation).toMatchObject({ kind: 'server.move', status: 'pending', server_id: id })
    expect(await stored(id)).toMatchObject({
      spec: { zone: cloud.zone },
      operation: { arguments: { target_zone: OTHER_ZONE } },
    })
    expect(await cloud.auditOf(reply)).toMatchObject([
      {
        action: 'server.move',
        outcome: 'success',
        changes: [{ field: 'zone', before: cloud.zone, after: OTHER_ZONE }],
      },
    ])
    expect((await leave(await createSettled('started'))).body).toMatchObject({
      status: 409,
      reason: 'server_not_stopped',
    })
  })

  test('is refused for a zone that is none of the region, and for a closed one', async () => {
    const id = await createSettled('stopped')
    await cloud.admin.create(Zone, {
      metadata: { name: 'eu-1-c' },
      spec: { displayName: 'C', region: 'eu-1', isClosed: true, capabilities: [] },
    })
    expect((await leave(id, 'nowhere')).body).toMatchObject({ status: 400, errors: [{ field: 'zone' }] })
    await expect
      .poll(async () => (await leave(id, 'eu-1-c')).body)
      .toMatchObject({ status: 503, reason: 'no_capacity', detail: 'The zone takes no new servers.' })
  })

  test('without room there is 503, and nothing is held', async () => {
    const id = await createSettled('stopped')
    await openNode(false, OTHER_ZONE)
    expect((await leave(id)).body).toMatchObject({ status: 503, reason: 'no_capacity' })
    await openNode(true, OTHER_ZONE)
    expect(
      await cloud.db.selectFrom('address_claim').select('value').where('holder', 'like', 'server_arriving/%').execute(),
    ).toEqual([])
  })

  test('is refused where the name is taken', async () => {
    const { hostname } = (await stored(await createSettled('stopped'))).spec
    const id = (
      await ada.send('POST', '/v1/servers', {
        body: { zone: OTHER_ZONE, hostname, plan: 'tiny', template: 'tiny-linux' },
      })
    ).body.server.id
    await report(id, 'stopped', 'succeeded')
    expect((await leave(id, cloud.zone)).body).toMatchObject({ status: 409, reason: 'name_taken' })
  })

  test('is refused while the server has a separate storage, before anything changes', async () => {
    const id = await createSettled('stopped')
    const storageId = newUuid(systemRandom)
    const storage = { accountId: ada.accountId, storageId }
    await cloud.db.transaction().execute(async (tx) => {
      await claimStorage(tx, { ...storage, zone: cloud.zone, sizeGibibytes: 1 }, new Date())
      await attachStorage(tx, { ...storage, serverId: id, volume: 'v1' })
    })
    const placement = () =>
      cloud.db.selectFrom('placement').selectAll().where('server_id', '=', id).executeTakeFirstOrThrow()
    const before = await placement()
    expect((await leave(id)).body).toMatchObject({
      status: 409,
      reason: 'in_use',
      detail: 'The server has a storage besides its boot storage, which stays in its zone. Detach it first.',
      resource: { type: 'storage', id: storageId },
    })
    expect((await stored(id)).operation.kind).toBe('server.create')
    expect(await placement()).toEqual(before)
    expect(await cloud.db.selectFrom('placement_target').selectAll().where('server_id', '=', id).execute()).toEqual([])
    await cloud.db.transaction().execute((tx) => releaseStorage(tx, { ...storage, isForced: false }))
    expect((await leave(id)).body.operation).toMatchObject({ kind: 'server.move' })
  })

  test('is refused for what is bound to the zone: a group of it, a local-nvme storage', async () => {
    const {
      server_group: { id: server_group_id },
    } = (await ada.send('POST', '/v1/server-groups', { body: { name: 'apart', zone: cloud.zone } })).body
    const grouped = (
      await ada.send('POST', '/v1/servers', {
        body: { zone: cloud.zone, hostname: 'grouped', plan: 'tiny', template: 'tiny-linux', server_group_id },
      })
    ).body.server.id
    await report(grouped, 'stopped', 'succeeded')
    expect((await leave(grouped)).body).toMatchObject({
      status: 409,
      reason: 'in_use',
      resource: { type: 'server_group', id: server_group_id },
    })
    const id = await createSettled('stopped')
    await cloud.admin.create(Storage, {
      metadata: { ...keyOf(id), name: 'fast' },
      spec: {
        zone: cloud.zone,
        title: '',
        sizeGibibytes: 1,
        tier: 'local-nvme',
        isBoot: false,
        serverId: id,
        labels: {},
        isProtected: false,
      },
    })
    expect((await leave(id)).body).toMatchObject({
      status: 409,
      reason: 'in_use',
      resource: { type: 'storage', id: 'fast' },
    })
  })
})

describe('get_operation', () => {
  test('shows every field of the progress while the guest is sent, and none afterwards', async () => {
    const id = await createSettled('started')
    const { operation } = (await move(id)).body
    const read = async () => (await ada.send('GET', `/v1/operations/${operation.id}`)).body.operation.progress
    expect(await read()).toBeUndefined()
    await report(id, 'started', 'running', { operationId: operation.id, state: 'sending', ...FIGURES })
    expect(await read()).toEqual({
      state: 'sending',
      source_node_id: 'node-a1',
      target_node_id: SECOND,
      phase: 'transferring',
      attempt: 2,
      iteration: 3,
      transferred_bytes: 10,
      total_bytes: 100,
      dirty_bytes_per_second: 7,
      downtime_milliseconds: 0,
      detail: '',
      reported_at: '2026-01-01T12:00:00.000Z',
    })
    await report(id, 'started', 'succeeded')
    expect(await read()).toBeUndefined()
  })
})

describe('cancel_operation', () => {
  const cancel = (id: string, by: Person = ada) => by.send('POST', `/v1/operations/${id}/cancel`)

  test('writes the wish beside a move, as often as it is asked', async () => {
    const id = await createSettled('started')
    const { operation } = (await move(id)).body
    const reply = await cancel(operation.id)
    expect(reply.body).toMatchObject({ operation: { id: operation.id, kind: 'server.migrate' } })
    expect((await stored(id)).operation).toMatchObject({ id: operation.id, arguments: { cancel: 'true' } })
    expect(await cloud.auditOf(reply)).toMatchObject([
      { action: 'operation.cancel', outcome: 'success', resource_id: operation.id },
    ])
    expect((await cancel(operation.id)).status).toBe(202)
  })

  test('the wish ends with its operation: the next move is not cancelled', async () => {
    const id = await createSettled('started')
    await cancel((await move(id)).body.operation.id)
    await report(id, 'started', 'succeeded')
    await move(id)
    expect((await stored(id)).operation.arguments ?? {}).toEqual({})
  })

  test('beyond the point of no return, after its end, and for other kinds it is 409', async () => {
    const id = await createSettled('started')
    const { operation } = (await move(id)).body
    await report(id, 'started', 'running', { operationId: operation.id, state: 'switched', ...FIGURES })
    expect((await cancel(operation.id)).body).toMatchObject({ status: 409, reason: 'state_not_allowed' })
    await report(id, 'started', 'succeeded')
    expect((await cancel(operation.id)).body).toMatchObject({ status: 409, reason: 'state_not_allowed' })
    const stop = (await ada.send('POST', `/v1/servers/${id}/stop`, { body: {} })).body.operation
    expect((await cancel(stop.id)).body).toMatchObject({ status: 409, reason: 'state_not_allowed' })
  })

  test('what the platform began for its own reasons continues', async () => {
    const id = await createSettled('started')
    const { operation } = (await move(id)).body
    const { spec } = (await cloud.admin.get(Operation, { ...keyOf(id), name: operation.id })) ?? {}
    await cloud.admin.delete(Operation, { ...keyOf(id), name: operation.id })
    if (spec === undefined) throw new Error('a move has its record')
    await cloud.admin.create(Operation, {
      metadata: { ...keyOf(id), name: operation.id },
      spec: { ...spec, actor: 'system:node' },
    })
    expect((await cancel(operation.id)).body).toMatchObject({ status: 409, reason: 'state_not_allowed' })
  })

  test("another account's operation is not there", async () => {
    expect((await cancel((await move(await createSettled('started'))).body.operation.id, bob)).status).toBe(404)
  })
})

describe('an operator', () => {
  const GET_AND_UPDATE = ['get', 'list', 'update']
  beforeAll(async () => {
    await cloud.grant('olga', [{ resources: ['operations', 'servers'], verbs: GET_AND_UPDATE }])
    await cloud.grant('oscar', [{ resources: ['operations'], verbs: GET_AND_UPDATE }])
  })
  const operate = (method: string, path: string, who = 'olga') =>
    cloud.operate(who, method, `/v1/operator/operations/${path}`)
  async function moving(state: 'sending' | 'switched'): Promise<{ readonly id: string; readonly operation: string }> {
    const id = await createSettled('started')
    const { operation } = (await move(id)).body
    await report(id, 'started', 'running', { operationId: operation.id, state, ...FIGURES })
    return { id, operation: operation.id }
  }

  test('sees how far the guest of anybody is', async () => {
    const { operation } = await moving('sending')
    expect((await operate('GET', operation)).body['operation'].progress).toMatchObject({
      state: 'sending',
      attempt: 2,
      transferred_bytes: 10,
      target_node_id: SECOND,
    })
  })
  test('cancels a move before its point of no return', async () => {
    const { id, operation } = await moving('sending')
    expect((await operate('POST', `${operation}/cancel`)).status).toBe(202)
    expect((await stored(id)).operation.arguments).toMatchObject({ cancel: 'true' })
  })
  test('and not beyond it', async () => {
    const { id, operation } = await moving('switched')
    expect((await operate('POST', `${operation}/cancel`)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
      detail: 'The server is on its new node already.',
    })
    expect((await stored(id)).operation.arguments ?? {}).toEqual({})
  })
  test('who may not touch the servers of the account cancels none of their moves', async () => {
    const { id, operation } = await moving('sending')
    expect((await operate('POST', `${operation}/cancel`, 'oscar')).body).toMatchObject({
      status: 403,
      detail: expect.stringContaining('update on servers.svccloud.dev'),
    })
    expect((await stored(id)).operation.arguments ?? {}).toEqual({})
  })
})
