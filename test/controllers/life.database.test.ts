/** The whole life of servers with real controllers, a real agent and a real database, with kubectl. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { listAudit } from '../../db/audit/index.ts'
import { recordIntent } from '../../db/change/index.ts'
import { type KubernetesRequest, recordKubernetesRequest } from '../../db/request/index.ts'
import { findOperation } from '../../db/operation/index.ts'
import { findCandidate } from '../../db/placement/index.ts'
import { listQuotas } from '../../db/account/index.ts'
import { Event, type KubeObject, Namespace, type ResourceType } from '../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Instance, nodeNamespace, Volume } from '../../resources/instance/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../resources/kit/labels.ts'
import { Operation } from '../../resources/operation/index.ts'
import { Node } from '../../resources/node/index.ts'
import { Plan, type PlanSpec, Zone } from '../../resources/catalog/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { createAccount } from '../accounts.ts'
import { useDatabase } from '../database.ts'
import { type Cloud, fastClock, type Mortals, NODE, openCloud, ZONE } from './cloud.ts'
import { until } from './until.ts'
import { requestedNow } from './requested.ts'

const database = useDatabase()
let cloud: Cloud
let stopAgent: () => Promise<void>
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  stopAgent = cloud.startAgent()
})
afterAll(() => cloud.close())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

type ServerObject = KubeObject<ServerSpec, ServerStatus>
const read = (name = 'web') => cloud.kubectl.get(Server, { namespace, name })
// the API server fills in the defaults
const bare = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux' } as unknown as ServerSpec
const create = (spec: Partial<ServerSpec> = {}, name = 'web') =>
  cloud.kubectl.create(Server, { metadata: { name, namespace }, spec: { ...bare, ...spec } })
const edit = (spec: Partial<Record<keyof ServerSpec, unknown>>) =>
  cloud.kubectl.patch(Server, { namespace, name: 'web' }, { spec })
const remove = () => cloud.kubectl.delete(Server, { namespace, name: 'web' })
const isIdle = (server: ServerObject | undefined) =>
  server?.spec.operation?.id === server?.status?.operation?.id && server?.status?.operation?.finishedAt !== undefined
const inState = (state: ServerStatus['state']) =>
  until(state, read, (server) => server?.status?.state === state && isIdle(server)) as Promise<ServerObject>
const gone = () => until('gone', read, (server) => server === undefined)
const isReady = (server: ServerObject) => server.status?.conditions?.find(({ type }) => type === 'Ready')?.status
const kinds = async () =>
  (await cloud.kubectl.list(Operation, { namespace })).items
    .map(({ spec, status }) => `${spec.kind} ${status?.status} ${spec.actor}`)
    .sort()
/** The end of the records follows the servers. */
const recorded = (expected: readonly string[]) =>
  until('records', kinds, (observed) => JSON.stringify(observed) === JSON.stringify(expected))
const audited = async () =>
  (await listAudit(database.db, accountId, { limit: 100 }))
    .map(({ action, actor_email, outcome }) => `${action} ${actor_email} ${outcome}`)
    .reverse()

/** Nothing of the account's servers is anywhere. */
async function expectNothingLeft() {
  const count = async (type: ResourceType, where: string) =>
    (await cloud.kubectl.list(type, { namespace: where })).items.length
  expect({
    storages: await count(Storage, namespace),
    instances: await count(Instance, nodeNamespace(NODE)),
    volumes: await count(Volume, nodeNamespace(NODE)),
  }).toEqual({ storages: 0, instances: 0, volumes: 0 })
  expect({ guests: cloud.host.running().length, disks: cloud.volumes.size }).toEqual({ guests: 0, disks: 0 })
  expect((await listQuotas(database.db, accountId)).filter(({ used }) => used !== 0)).toEqual([])
  expect((await findCandidate(database.db, NODE))?.used).toEqual({ cores: 0, memoryMebibytes: 0, storageGibibytes: 0 })
  for (const table of ['placement', 'address_claim', 'quota_holding'] as const)
    expect(
      await database.db.selectFrom(table).select('account_id').where('account_id', '=', accountId).execute(),
    ).toEqual([])
}

describe('with controllers that live', () => {
  let stop: () => Promise<void>
  beforeAll(() => {
    stop = cloud.startControllers()
  })
  afterAll(() => stop())
  afterEach(async () => {
    for (const { metadata } of (await cloud.kubectl.list(Server, { namespace })).items)
      await cloud.kubectl.delete(Server, { namespace, name: metadata.name })
    await until(
      'no servers',
      () => cloud.kubectl.list(Server, { namespace }),
      ({ items }) => items.length === 0,
    )
  })

  test('the metadata setting reaches a running guest without a restart', async () => {
    const before = await create().then(() => inState('started'))
    await edit({ metadataEnabled: false, operation: requestedNow('server.metadata') })
    const actionLines = await until('the end of the operation', read, isIdle)
    expect(actionLines?.status).toMatchObject({
      state: 'started',
      incarnation: before.status?.incarnation,
      operation: { kind: 'server.metadata', status: 'succeeded' },
    })
    expect(
      (await cloud.kubectl.get(Instance, { namespace: nodeNamespace(NODE), name: before.metadata.uid ?? '' }))?.spec,
    ).toMatchObject({ power: 'running', metadata: { isEnabled: false } })
  })

  test('changes are made in the name of who asked the Kubernetes API for them', async () => {
    await create().then(() => inState('started'))
    const asks = async (action: string, change: () => Promise<unknown>, changes: KubernetesRequest['changes'] = []) => {
      const {
        metadata: { uid = '', generation = 0 },
      } = (await read()) as ServerObject
      const now = fastClock.now()
      for (const stale of [0, generation])
        await recordKubernetesRequest(database.db, {
          uid,
          action,
          generation: stale,
          username: 'mallory',
          requestedAt: now,
          changes: [],
        })
      await recordKubernetesRequest(database.db, {
        uid,
        action,
        generation: generation + 1,
        username: 'grace@example.com',
        requestedAt: now,
        changes,
      })
      await change()
    }
    await asks('server.stop', () => edit({ desiredPower: 'stopped' }))
    await inState('stopped')
    await asks('server.update', () => edit({ title: 'New' }), [{ field: 'title', before: '', after: 'New' }])
    await until('the entry', audited, (entries) => entries.includes('server.update user:grace@example.com success'))
    await asks('server.metadata', () => edit({ metadataEnabled: false }))
    await until('the operation', kinds, (all) => all.includes('server.metadata succeeded user:grace@example.com'))
    await inState('stopped')
    await asks('server.delete', remove)
    await gone()
    expect(await audited()).toEqual([
      'server.create user:kubectl-edit success',
      ...['stop', 'update', 'metadata', 'delete'].map((verb) => `server.${verb} user:grace@example.com success`),
    ])
    await recorded([
      'server.create succeeded user:kubectl-edit',
      'server.delete succeeded user:grace@example.com',
      'server.metadata succeeded user:grace@example.com',
      'server.stop succeeded user:grace@example.com',
    ])
  })

  test('a server comes, stops, starts, restarts and goes, and leaves nothing', async () => {
    const made = await create().then(() => inState('started'))
    expect(isReady(made)).toBe('True')
    expect(made.status).toMatchObject({
      nodeName: NODE,
      cores: 1,
      memoryMebibytes: 192,
      storageGibibytes: 1,
      region: 'eu-1',
      bootStorageId: 'web',
      incarnation: 1,
      macAddress: expect.stringMatching(/^52:54:00:/),
    })
    expect(made.metadata.finalizers).toEqual(['svccloud.dev/server'])
    expect(cloud.host.running()).toMatchObject([{ hostname: 'web', incarnation: 1 }])

    await edit({ desiredPower: 'stopped' })
    expect((await inState('stopped')).status?.startedAt).toBeUndefined()
    expect(cloud.host.running()).toEqual([])
    await edit({ desiredPower: 'running' })
    await inState('started')
    await edit({ operation: requestedNow('server.restart', { arguments: { stop_type: 'hard' } }) })
    expect((await inState('started')).status?.incarnation).toBe(3)
    expect(cloud.host.running()).toMatchObject([{ incarnation: 3 }])

    await remove()
    await gone()
    await expectNothingLeft()
    await recorded([
      'server.create succeeded user:kubectl-edit',
      'server.delete succeeded user:kubernetes',
      'server.restart succeeded user:1',
      'server.start succeeded user:kubectl-edit',
      'server.stop succeeded user:kubectl-edit',
    ])
    expect(await audited()).toEqual([
      'server.create user:kubectl-edit success',
      'server.stop user:kubectl-edit success',
      'server.start user:kubectl-edit success',
      'server.delete user:kubernetes success',
    ])
  })

  test('the record has the steps and the end', async () => {
    await create()
    const { status } = await inState('started')
    const id = status?.operation?.id ?? ''
    const record = await until(
      'the record to end',
      () => cloud.kubectl.get(Operation, { namespace, name: id }),
      (operation) => operation?.status?.status === 'succeeded',
    )
    expect(
      record?.status?.events?.map(({ kind, data }) => (data === undefined ? kind : `${kind} ${String(data['step'])}`)),
    ).toEqual(['started', 'step claimed', 'step storage', 'step instance', 'step started', 'succeeded'])
    expect(await findOperation(database.db, accountId, id)).toMatchObject({
      status: 'succeeded',
      kind: 'server.create',
      target: { type: 'server', id: 'web' },
      stepIndex: 4,
      stepCount: 4,
    })
  })

  test('a server that is not to be started is made and stays off', async () => {
    await create({ desiredPower: 'stopped' })
    expect(isReady(await inState('stopped'))).toBe('True')
    expect(cloud.host.running()).toEqual([])
  })

  test('a guest that shuts itself down stays off, and the audit log says so', async () => {
    await create().then(() => inState('started'))
    cloud.host.powerOffGuest(cloud.host.running()[0]?.name ?? '')
    const server = await inState('stopped')
    expect([server.spec.desiredPower, server.status?.stateDetail]).toEqual(['stopped', 'The guest shut itself down.'])
    expect(await audited()).toContain('server.guest_shutdown system:node success')
  })

  test('a guest whose host has no free storage is shown, and goes on by itself', async () => {
    await create().then(() => inState('started'))
    const guest = cloud.host.running()[0]?.name ?? ''
    cloud.host.fillDisk(guest)
    const server = await inState('error')
    expect(server.status?.stateDetail).toContain('The storage of the host is full. The guest is paused')
    expect(server.status?.conditions?.find(({ type }) => type === 'Stalled')?.status).toBe('True')
    cloud.host.freeDisk(guest)
    expect((await inState('started')).status?.incarnation).toBe(1)
  })

  test('a guest that crashes is restarted, three times in ten minutes, then not', async () => {
    await create().then(() => inState('started'))
    for (const incarnation of [2, 3, 4]) {
      cloud.host.crashGuest(cloud.host.running()[0]?.name ?? '')
      await until(
        `incarnation ${incarnation}`,
        read,
        (server) => server?.status?.incarnation === incarnation && server.status.state === 'started' && isIdle(server),
      )
    }
    cloud.host.crashGuest(cloud.host.running()[0]?.name ?? '')
    expect((await inState('error')).status?.stateDetail).toContain('crashed 4 times')
    await edit({ operation: requestedNow('server.start') })
    expect((await inState('started')).status?.incarnation).toBe(5)
  })

  test('a stop that the guest does not obey fails, and the server runs on', async () => {
    await create().then(() => inState('started'))
    await until(
      'the guest to listen',
      async () => cloud.host.running().length,
      (count) => count === 1,
    )
    cloud.host.hangGuest(cloud.host.running()[0]?.name ?? '')
    await edit({
      desiredPower: 'stopped',
      operation: requestedNow('server.stop', {
        arguments: { stop_type: 'soft', timeout_seconds: '2', timeout_action: 'fail' },
      }),
    })
    const server = (await until(
      'the stop to fail',
      read,
      (observed) => observed?.status?.operation?.status === 'failed',
    )) as ServerObject
    expect([server.status?.state, server.spec.desiredPower, server.status?.operation?.error]).toEqual([
      'started',
      'running',
      expect.stringContaining('did not shut down within 2 seconds'),
    ])
    await edit({
      desiredPower: 'stopped',
      operation: requestedNow('server.stop', { arguments: { stop_type: 'hard' } }),
    })
    await inState('stopped')
  })

  test('a guest that cannot be started leaves the server stopped with the reason', async () => {
    await create({ desiredPower: 'stopped' }).then(() => inState('stopped'))
    cloud.host.failNextStart('The machine has no memory left.')
    await edit({ desiredPower: 'running' })
    const server = (await until(
      'the start to fail',
      read,
      (observed) => observed?.status?.operation?.status === 'failed',
    )) as ServerObject
    expect([server.status?.state, server.spec.desiredPower, server.status?.operation?.error]).toEqual([
      'stopped',
      'stopped',
      'The machine has no memory left.',
    ])
  })

  test('another plan is given to a stopped server by an edit, together with a start or without', async () => {
    const plan = { family: 'starter', cores: 2, memoryMebibytes: 256, storageGibibytes: 2, priceMonthlyCents: 200 }
    await cloud.kubectl.create(Plan, { metadata: { name: 'double' }, spec: plan as PlanSpec })
    await create({ desiredPower: 'stopped' }).then(() => inState('stopped'))
    await edit({ plan: 'double' })
    const resized = await until('the new plan', read, (server) => server?.status?.plan === 'double' && isIdle(server))
    expect(resized?.status).toMatchObject({
      state: 'stopped',
      cores: 2,
      storageGibibytes: 2,
      operation: { kind: 'server.change_plan', status: 'succeeded', actor: 'user:kubectl-edit' },
    })
    await edit({ plan: 'tiny', storageGibibytes: 3, desiredPower: 'running' })
    expect((await inState('started')).status).toMatchObject({ plan: 'tiny', cores: 1, storageGibibytes: 3 })
    await recorded([
      'server.change_plan succeeded user:kubectl-edit',
      'server.change_plan succeeded user:kubectl-edit',
      'server.create succeeded user:kubectl-edit',
      'server.start succeeded system:controllers',
    ])
    await expect(edit({ plan: 'double' })).rejects.toThrow('only a stopped server can get another plan')
    await edit({ desiredPower: 'stopped' })
    await inState('stopped')
    await edit({ plan: 'unheard-of' })
    const failed = await until(
      'the refusal',
      read,
      (server) => server?.status?.operation?.status === 'failed' && isIdle(server),
    )
    expect([failed?.spec.plan, failed?.status?.plan, failed?.status?.operation?.error]).toEqual([
      'tiny',
      'tiny',
      'There is no plan unheard-of.',
    ])
  })

  test('kubectl describe shows how the creation of a server failed', async () => {
    await create({ plan: 'unheard-of' })
    const { metadata } = (await until(
      'the creation to fail',
      read,
      (server) => server?.status?.operation?.status === 'failed',
    )) as ServerObject
    // as kubectl looks for them
    const fieldSelector = `involvedObject.name=web,involvedObject.kind=Server,involvedObject.uid=${metadata.uid}`
    const events = async () =>
      (await cloud.kubectl.list({ ...Event, group: '' }, { namespace, fieldSelector })).items as unknown as readonly {
        readonly type: string
        readonly reason: string
        readonly message: string
      }[]
    const texts = async () =>
      (await events()).map(({ type, reason, message }) => `${type} ${reason}: ${message}`).sort()
    expect(await until('the event', texts, (all) => all.length > 0)).toEqual([
      'Warning OperationFailed: server.create failed at step claimed: There is no plan unheard-of.',
    ])
  })

  test('kubectl describe shows why a server waits for capacity', async () => {
    await create({ storageGibibytes: 5_000 })
    const events = () => cloud.kubectl.list(Event, { namespace })
    const { items } = await until('the refusal', events, ({ items }) => items.length > 0)
    expect(items).toContainEqual(
      expect.objectContaining({
        type: 'Warning',
        reason: 'NoCapacity',
        action: 'Claimed',
        regarding: expect.objectContaining({ kind: 'Server', name: 'web', namespace }),
        reportingController: 'svccloud.dev/controllers',
      }),
    )
  })

  test('a creation that is deleted is cancelled and leaves nothing', async () => {
    await create()
    await until('the creation to begin', read, (server) => server?.status?.operation?.kind === 'server.create')
    await remove()
    await gone()
    await expectNothingLeft()
    await until(
      'both records to end',
      kinds,
      (observed) =>
        observed.length === 2 && observed.every((line) => !line.includes('running') && !line.includes('pending')),
    )
    expect((await kinds())[1]).toBe('server.delete succeeded user:kubernetes')
  })

  test('a taken hostname is refused with its reason, and the second server takes nothing', async () => {
    await create().then(() => inState('started'))
    await create({}, 'twin')
    const twin = await until(
      'the refusal',
      () => read('twin'),
      (server) => server?.status?.state === 'error' && isIdle(server),
    )
    expect(twin?.status?.stateDetail).toContain('is called web')
    expect(twin?.status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Claimed', status: 'False', reason: 'NameTaken' }),
    )
    expect((await listQuotas(database.db, accountId)).find(({ name }) => name === 'servers')?.used).toBe(1)
  })

  test('a protected server is not deleted before its protection is lifted', async () => {
    await create({ isProtected: true }).then(() => inState('started'))
    await remove()
    await until(
      'the refusal',
      read,
      (server) =>
        server?.status?.conditions?.some(({ type, status }) => type === 'DeletionBlocked' && status === 'True') ??
        false,
    )
    expect(cloud.host.running()).toHaveLength(1)
    await edit({ isProtected: false })
    await gone()
    await expectNothingLeft()
  })

  test('an instance that somebody removes comes back, and the server runs', async () => {
    await create().then(() => inState('started'))
    const { items } = await cloud.kubectl.list(Instance, { namespace: nodeNamespace(NODE) })
    for (const { metadata } of items)
      await cloud.kubectl.delete(Instance, { namespace: nodeNamespace(NODE), name: metadata.name })
    await until(
      'the new incarnation',
      read,
      (server) => server?.status?.incarnation === 2 && server.status.state === 'started' && isIdle(server),
    )
  })

  test('a new title reaches the host without an operation', async () => {
    await create().then(() => inState('started'))
    await edit({ title: 'Shop' })
    await until(
      'the title',
      () => cloud.kubectl.list(Instance, { namespace: nodeNamespace(NODE) }),
      ({ items }) => items[0]?.spec.metadata.title === 'Shop',
    )
    expect((await read())?.spec.operation?.kind).toBe('server.create')
  })

  test('a change whose audit entry is still due gets it when the server goes', async () => {
    await create().then(() => inState('started'))
    const operationId = newUuid(systemRandom)
    const audit = {
      account_id: accountId,
      actor_email: 'ada@example.com',
      actor_kind: 'user' as const,
      user_id: null,
      staff_id: null,
      token_id: null,
      token_name: null,
      action: 'server.update',
      resource_type: 'server',
      resource_id: 'web',
      detail: {},
      outcome: 'success' as const,
      source_ip: '',
      user_agent: '',
      request_id: operationId,
      changes: [],
    }
    await database.db.transaction().execute((tx) =>
      recordIntent(tx, {
        operationId,
        accountId,
        resource: { type: 'server', id: 'web' },
        createdAt: fastClock.now(),
        audit,
      }),
    )
    await cloud.kubectl.patch(
      Server,
      { namespace, name: 'web' },
      { metadata: { annotations: { [LAST_CHANGE_ANNOTATION]: operationId } } },
    )
    await remove()
    await gone()
    expect(await audited()).toContain('server.update ada@example.com success')
    expect(
      await database.db
        .selectFrom('change_intent')
        .select('operation_id')
        .where('account_id', '=', accountId)
        .execute(),
    ).toEqual([])
  })

  test('a namespace that is deleted takes its servers along, and they leave nothing', async () => {
    await create().then(() => inState('started'))
    const id = (await read())?.spec.operation?.id ?? ''
    await cloud.kubectl.delete(Namespace, { name: namespace })
    await until(
      'the namespace to go',
      () => cloud.kubectl.get(Namespace, { name: namespace }),
      (observed) => observed === undefined,
    )
    await expectNothingLeft()
    expect(await findOperation(database.db, accountId, id)).toMatchObject({
      kind: 'server.create',
      status: 'succeeded',
    })
    expect(await audited()).toEqual([
      'server.create user:kubectl-edit success',
      'server.delete user:kubernetes success',
    ])
  })

  test('a server whose finalizer somebody takes off leaves nothing on the host', async () => {
    await create().then(() => inState('started'))
    await remove()
    await cloud.kubectl
      .patch(Server, { namespace, name: 'web' }, { metadata: { finalizers: null } })
      .catch(() => undefined)
    await gone()
    await until(
      'the host to be empty',
      async () => [cloud.host.running().length, cloud.volumes.size],
      ([guests, disks]) => guests === 0 && disks === 0,
    )
    await until(
      'no instance',
      () => cloud.kubectl.list(Instance, { namespace: nodeNamespace(NODE) }),
      ({ items }) => items.length === 0,
    )
    await cloud.sweepClaims(3_600_000)
    await expectNothingLeft()
  })

  test('a silent host is an error that resolves by itself, and the guest is not touched', async () => {
    await create().then(() => inState('started'))
    await stopAgent()
    const lost = (await until('the silence', read, (server) => server?.status?.state === 'error')) as ServerObject
    expect([lost.status?.stateDetail, isReady(lost)]).toEqual([expect.stringContaining('does not answer'), 'False'])
    expect((await cloud.kubectl.get(Node, { name: NODE }))?.status?.state).toBe('unreachable')
    expect((await findCandidate(database.db, NODE))?.isSchedulable).toBe(false)
    stopAgent = cloud.startAgent()
    expect((await inState('started')).status?.incarnation).toBe(1)
    await until(
      'the node',
      () => cloud.kubectl.get(Node, { name: NODE }),
      (node) => node?.status?.state === 'ready',
    )
  })

  test('a zone without room is asked again until there is some', async () => {
    const cordon = (isCordoned: boolean) => cloud.kubectl.patch(Node, { name: NODE }, { spec: { isCordoned } })
    await cordon(true)
    await until(
      'the node to close',
      () => findCandidate(database.db, NODE),
      (node) => node?.isSchedulable === false,
    )
    await until(
      'the zone to be full',
      () => cloud.kubectl.get(Zone, { name: ZONE }),
      (zone) => zone?.status?.state === 'full' && zone.status.unavailablePlans?.includes('tiny') === true,
    )
    await create()
    await until(
      'the refusal',
      read,
      (server) =>
        server?.status?.conditions?.some(({ type, reason }) => type === 'Claimed' && reason === 'NoCapacity') ?? false,
    )
    expect((await read())?.status?.state).toBe('creating')
    await cordon(false)
    await inState('started')
  })

  test('the zone and the node say that they are well', async () => {
    await until(
      'the zone',
      () => cloud.kubectl.get(Zone, { name: ZONE }),
      (zone) => zone?.status?.state === 'available',
    )
    expect((await cloud.kubectl.get(Node, { name: NODE }))?.status).toMatchObject({
      state: 'ready',
      logicalCpus: 2,
      hypervisor: 'simulated',
    })
  })
})

describe('with controllers that die', () => {
  let mortals: Mortals | undefined
  afterEach(() => mortals?.stop())

  test.each([1, 2])('after every %i writes, a deletion waits for the operation that runs', async (writesMaximum) => {
    mortals = cloud.startMortals(writesMaximum)
    await create().then(() => inState('started'))
    const [guest] = cloud.host.running()
    cloud.host.hangGuest(guest?.name ?? '')
    await edit({ desiredPower: 'stopped' })
    const isStopping = (server: ServerObject | undefined) =>
      server?.status?.operation?.kind === 'server.stop' && server.status.operation.finishedAt === undefined
    await until('the stop to run', read, isStopping)
    await remove()
    const waits = (server: ServerObject | undefined) =>
      server?.status?.conditions?.some(({ type, status }) => type === 'DeletionWaits' && status === 'True') === true
    const waiting = await until('the deletion to wait', read, waits)
    expect(waiting?.metadata.deletionTimestamp).toBeDefined()
    expect(isStopping(waiting), 'its guest is not taken from it').toBe(true)
    await gone()
    await recorded([
      'server.create succeeded user:kubectl-edit',
      'server.delete succeeded user:kubernetes',
      'server.stop succeeded user:kubectl-edit',
    ])
    await mortals.stop()
    await expectNothingLeft()
  })

  test.each([1, 2, 3])('after every %i writes, everything still gets done once', async (writesMaximum) => {
    mortals = cloud.startMortals(writesMaximum)
    await create().then(() => inState('started'))
    expect(cloud.host.running()).toMatchObject([{ incarnation: 1 }])
    await edit({ desiredPower: 'stopped' })
    await inState('stopped')
    await edit({ desiredPower: 'running' })
    expect((await inState('started')).status?.incarnation).toBe(2)
    await remove()
    await gone()
    await recorded([
      'server.create succeeded user:kubectl-edit',
      'server.delete succeeded user:kubernetes',
      'server.start succeeded user:kubectl-edit',
      'server.stop succeeded user:kubectl-edit',
    ])
    await mortals.stop()
    expect(mortals.deaths()).toBeGreaterThan(5)
    await expectNothingLeft()
    expect(await audited()).toEqual([
      'server.create user:kubectl-edit success',
      'server.stop user:kubectl-edit success',
      'server.start user:kubectl-edit success',
      'server.delete user:kubernetes success',
    ])
  })
})
