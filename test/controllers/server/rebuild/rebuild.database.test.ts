/** Rebuilds and changes of plans with real controllers, a real agent and a real database; also with controllers that
 *  die all the time. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { findOperation } from '../../../../db/operation/index.ts'
import { findCandidate } from '../../../../db/placement/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { findServerClaims } from '../../../../db/server/index.ts'
import { type KubeObject, Secret } from '../../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Instance, nodeNamespace, Volume } from '../../../../resources/instance/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { ManagedMachine } from '../../../../resources/managed-machine/index.ts'
import { Plan, Template } from '../../../../resources/catalog/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../resources/server/index.ts'
import type { OperationStanza } from '../../../../resources/shapes.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, type Mortals, NODE, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
let cloud: Cloud
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  cloud.startAgent()
  for (const [name, cores, storageGibibytes] of [
    ['small', 2, 3],
    ['bare', 3, 1],
    ['huge', 64, 4],
  ] as const) {
    await cloud.kubectl.create(Plan, {
      metadata: { name },
      spec: { family: 'starter', cores, memoryMebibytes: cores * 192, storageGibibytes, priceMonthlyCents: 100 },
    })
  }
  const tiny = await cloud.kubectl.get(Template, { name: 'tiny-linux' })
  if (tiny !== undefined) await cloud.kubectl.create(Template, { metadata: { name: 'other-linux' }, spec: tiny.spec })
})
afterAll(() => cloud.close())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

type ServerObject = KubeObject<ServerSpec, ServerStatus>
const read = () => cloud.kubectl.get(Server, { namespace, name: 'web' })
const isIdle = (server: ServerObject | undefined) =>
  server?.spec.operation?.id === server?.status?.operation?.id && server?.status?.operation?.finishedAt !== undefined
const inState = (state: ServerStatus['state']) =>
  until(state, read, (server) => server?.status?.state === state && isIdle(server)) as Promise<ServerObject>
const ended = (operation: OperationStanza) =>
  until(
    `the end of ${operation.kind}`,
    read,
    (server) => server?.status?.operation?.id === operation.id && isIdle(server),
  ) as Promise<ServerObject>

async function create(state: 'started' | 'stopped', spec: Partial<ServerSpec> = {}): Promise<ServerObject> {
  const bare = {
    hostname: 'web',
    zone: ZONE,
    plan: 'tiny',
    template: 'tiny-linux',
    desiredPower: state === 'started' ? 'running' : 'stopped',
  } as unknown as ServerSpec // the API server fills in the defaults
  await cloud.kubectl.create(Server, { metadata: { name: 'web', namespace }, spec: { ...bare, ...spec } })
  return inState(state)
}

/** As the API writes it. */
async function begin(
  kind: 'server.rebuild' | 'server.change_plan',
  spec: Partial<Record<keyof ServerSpec, unknown>>,
  args: Record<string, string>,
  { deadlineSeconds = 600 } = {},
): Promise<OperationStanza> {
  const now = fastClock.now()
  const operation: OperationStanza = {
    id: newUuid(systemRandom),
    kind,
    requestedAt: now.toISOString(),
    deadlineAt: new Date(now.getTime() + deadlineSeconds * 1_000).toISOString(),
    actor: 'user:1',
    requestId: newUuid(systemRandom),
    arguments: args,
  }
  await cloud.kubectl.patch(Server, { namespace, name: 'web' }, { spec: { ...spec, operation } })
  return operation
}
const rebuild = (
  spec: Partial<Record<keyof ServerSpec, unknown>> = { template: 'other-linux' },
  args: Record<string, string> = {},
  rest = {},
) => begin('server.rebuild', spec, { previous_boot_storage: 'web', previous_template: 'tiny-linux', ...args }, rest)
const changePlan = (plan: string, storageGibibytes: number, { start = false } = {}) =>
  begin(
    'server.change_plan',
    { plan, storageGibibytes, ...(start ? { desiredPower: 'running' } : {}) },
    { previous_plan: 'tiny', previous_storage_gibibytes: '1', ...(start ? { start: 'true' } : {}) },
  )

const disks = () => [...cloud.volumes.values()].map(({ sizeGibibytes, source }) => `${source?.name} ${sizeGibibytes}`)
const storages = async () =>
  (await cloud.kubectl.list(Storage, { namespace })).items.map(({ metadata }) => metadata.name)
const operations = async () =>
  (await cloud.kubectl.list(Operation, { namespace })).items
    .map(({ spec, status }) => `${spec.kind} ${status?.status} ${spec.actor}`)
    .sort()
const sizes = async () => {
  const used = Object.fromEntries(
    (await listQuotas(database.db, accountId)).map(({ name, used: amount }) => [name, amount]),
  )
  const claims = await findServerClaims(database.db, { accountId, serverId: 'web' })
  const node = (await findCandidate(database.db, NODE))?.used
  return [
    [claims?.placement.cores, claims?.placement.storageGibibytes],
    [node?.cores, node?.storageGibibytes],
    [used['cores'], used['storage_gibibytes']],
  ]
}
const everywhere = (cores: number, storage: number) => [
  [cores, storage],
  [cores, storage],
  [cores, storage],
]
const instanceOf = async (server: ServerObject) =>
  (await cloud.kubectl.get(Instance, { namespace: nodeNamespace(NODE), name: server.metadata.uid ?? '' }))?.spec

async function removeServer() {
  await cloud.kubectl.delete(Server, { namespace, name: 'web' })
  await until('no server', read, (server) => server === undefined)
  expect({
    guests: cloud.host.running().length,
    disks: disks(),
    storages: await storages(),
    secrets: (await cloud.kubectl.list(Secret, { namespace })).items.length,
  }).toEqual({ guests: 0, disks: [], storages: [], secrets: 0 })
  expect((await cloud.kubectl.list(Volume, { namespace: nodeNamespace(NODE) })).items).toEqual([])
  expect((await findCandidate(database.db, NODE))?.used).toEqual({ cores: 0, memoryMebibytes: 0, storageGibibytes: 0 })
}

describe('with controllers that live', () => {
  let stop: () => Promise<void>
  beforeAll(() => {
    stop = cloud.startControllers()
  })
  afterAll(() => stop())
  afterEach(removeServer)

  test('stopped | rebuild: a new disk from another template, and the old one is gone', async () => {
    const before = await create('stopped')
    const operation = await rebuild()
    const after = await ended(operation)
    expect(after.status).toMatchObject({
      state: 'stopped',
      bootStorageId: operation.id,
      macAddress: before.status?.macAddress,
      operation: { status: 'succeeded' },
    })
    await until(
      'one disk',
      async () => disks(),
      (observed) => JSON.stringify(observed) === '["other-linux 1"]',
    )
    await until('one storage', storages, (observed) => JSON.stringify(observed) === JSON.stringify([operation.id]))
    expect([(await instanceOf(after))?.template, after.spec.desiredPower]).toEqual(['other-linux', 'stopped'])
    const again = await rebuild(
      { template: 'tiny-linux' },
      { previous_boot_storage: operation.id, previous_template: 'other-linux' },
    )
    expect((await ended(again)).status).toMatchObject({ state: 'stopped', bootStorageId: again.id })
    await until(
      'one disk',
      async () => disks(),
      (observed) => JSON.stringify(observed) === '["tiny-linux 1"]',
    )
  })

  test('started | rebuild with stop: it is stopped, rebuilt and started again, in one operation', async () => {
    await create('started')
    const operation = await rebuild()
    const after = await ended(operation)
    expect(after.status).toMatchObject({
      state: 'started',
      incarnation: 2,
      operation: { id: operation.id, status: 'succeeded' },
    })
    expect(cloud.host.running()).toMatchObject([{ incarnation: 2 }])
    await until(
      'one disk',
      async () => disks(),
      (observed) => JSON.stringify(observed) === '["other-linux 1"]',
    )
    await until(
      'its records',
      operations,
      (observed) =>
        JSON.stringify(observed) ===
        JSON.stringify(['server.create succeeded user:kubectl-edit', 'server.rebuild succeeded user:1']),
    )
  })

  test('a rebuild brings its user data to the host, and takes what was there before away', async () => {
    const secret = (name: string, text: string) =>
      cloud.kubectl.create(Secret, {
        ...{ type: 'Opaque' },
        metadata: { name, namespace },
        spec: undefined,
        data: { userData: Buffer.from(text).toString('base64') },
      })
    const copy = async (server: ServerObject) => {
      const text = (
        await cloud.kubectl.get(Secret, { namespace: nodeNamespace(NODE), name: `user-data-${server.metadata.uid}` })
      )?.data?.['userData']
      return text === undefined ? undefined : Buffer.from(text, 'base64').toString()
    }
    await secret('web-user-data', 'first')
    const server = await create('stopped', { userDataSecretName: 'web-user-data' })
    expect(await copy(server)).toBe('first')
    await secret('web-user-data-2', 'second')
    const operation = await rebuild(
      { userDataSecretName: 'web-user-data-2' },
      { previous_user_data_secret: 'web-user-data' },
    )
    expect((await ended(operation)).status?.operation?.status).toBe('succeeded')
    expect([
      await copy(server),
      (await cloud.kubectl.list(Secret, { namespace })).items.map(({ metadata }) => metadata.name),
    ]).toEqual(['second', ['web-user-data-2']])
    const last = await rebuild(
      { userDataSecretName: null },
      { previous_user_data_secret: 'web-user-data-2', previous_boot_storage: operation.id },
    )
    expect((await ended(last)).status?.operation?.status).toBe('succeeded')
    expect([await copy(server), (await cloud.kubectl.list(Secret, { namespace })).items]).toEqual([undefined, []])
  })

  test('a rebuild that is not done in time leaves the server as it was, and running when it was', async () => {
    await create('started')
    const operation = await rebuild(
      { template: 'other-linux', userDataSecretName: 'not-there' },
      {},
      { deadlineSeconds: 20 },
    )
    const after = await until(
      'running again',
      read,
      (server) => server?.status?.state === 'started' && server.spec.operation?.id !== operation.id && isIdle(server),
    )
    expect(await findOperation(database.db, accountId, operation.id)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/Secret not-there.*as before/),
    })
    expect(after?.spec).toMatchObject({ template: 'tiny-linux' })
    expect([after?.spec.userDataSecretName, await storages(), disks()]).toEqual([undefined, ['web'], ['tiny-linux 1']])
    await until('its start', operations, (observed) => observed.includes('server.start succeeded system:controllers'))
  })

  test('stopped | change_plan up: cores, memory and disk grow, with what is claimed for them', async () => {
    const before = await create('stopped')
    expect(await sizes()).toEqual(everywhere(1, 1))
    const after = await ended(await changePlan('small', 3))
    expect(after.status).toMatchObject({
      state: 'stopped',
      cores: 2,
      memoryMebibytes: 384,
      storageGibibytes: 3,
      operation: { status: 'succeeded' },
    })
    expect([await sizes(), disks(), await instanceOf(after)]).toMatchObject([
      everywhere(2, 3),
      ['tiny-linux 3'],
      { cores: 2, memoryMebibytes: 384 },
    ])
    expect(after.status?.macAddress).toBe(before.status?.macAddress)
  })

  test('stopped | change_plan down: the disk stays', async () => {
    await create('stopped', { plan: 'bare' })
    const after = await ended(
      await begin(
        'server.change_plan',
        { plan: 'tiny', storageGibibytes: 1 },
        { previous_plan: 'bare', previous_storage_gibibytes: '1' },
      ),
    )
    expect([after.status, await sizes(), disks()]).toMatchObject([
      { state: 'stopped', cores: 1 },
      everywhere(1, 1),
      ['tiny-linux 1'],
    ])
  })

  test('change_plan with start: the server is started by the system when it is done', async () => {
    await create('stopped')
    await changePlan('small', 3, { start: true })
    await until('started', read, (server) => server?.status?.state === 'started' && isIdle(server))
    await until(
      'its records',
      operations,
      (observed) =>
        observed.includes('server.change_plan succeeded user:1') &&
        observed.includes('server.start succeeded system:controllers'),
    )
    expect(cloud.host.running()).toHaveLength(1)
  })

  test('change_plan to what the node has no room for fails and changes nothing', async () => {
    await create('stopped')
    const after = await ended(await changePlan('huge', 4, { start: true }))
    expect(after.status?.operation).toMatchObject({ status: 'failed', error: expect.stringContaining('no room') })
    expect([after.spec, after.status, await sizes(), disks()]).toMatchObject([
      { plan: 'tiny', storageGibibytes: 1, desiredPower: 'stopped' },
      { state: 'stopped', cores: 1 },
      everywhere(1, 1),
      ['tiny-linux 1'],
    ])
  })
})

describe('with controllers that die', () => {
  let mortals: Mortals | undefined
  afterEach(() => mortals?.stop())

  test.each([1, 2, 3])('after every %i writes, a plan is changed and a server rebuilt once', async (writesMaximum) => {
    mortals = cloud.startMortals(writesMaximum)
    await create('stopped')
    expect((await ended(await changePlan('small', 3))).status).toMatchObject({
      state: 'stopped',
      cores: 2,
      operation: { status: 'succeeded' },
    })
    expect([await sizes(), disks()]).toEqual([everywhere(2, 3), ['tiny-linux 3']])
    const operation = await rebuild()
    expect((await ended(operation)).status).toMatchObject({
      state: 'stopped',
      bootStorageId: operation.id,
      operation: { status: 'succeeded' },
    })
    await until(
      'one disk',
      async () => disks(),
      (observed) => JSON.stringify(observed) === '["other-linux 3"]',
    )
    await removeServer()
  })

  test.each([
    [1, true],
    [2, false],
    [3, true],
    [3, false],
  ])(
    'after every %i writes, a machine on trial that is well (%s) has the disk that it is well with',
    async (writes, isWell) => {
      mortals = cloud.startMortals(writes)
      const before = await create('started')
      const key = { namespace: nodeNamespace(NODE), name: before.metadata.uid ?? '' }
      const server = { namespace, name: 'web', uid: key.name }
      await cloud.kubectl.create(ManagedMachine, { metadata: key, spec: { server, managedBy: 'database:shop' } })
      const operation = await rebuild(
        { template: 'other-linux' },
        { image_version: '2' },
        { deadlineSeconds: isWell ? 1_800 : 60 },
      )
      // With the old disk it is always well, as soon as its guest runs.
      const answered = async () => {
        const { spec, metadata } = (await read()) ?? fail()
        const isOnOld = (spec.bootStorageId ?? metadata.name) === 'web'
        const status = { isHealthy: isWell || isOnOld, detail: '', reportedAt: '2099-01-01T00:00:00.000Z' }
        await cloud.kubectl.patch(ManagedMachine, key, { status }, 'status')
        return read()
      }
      const after = await until(
        'the end of the trial',
        answered,
        (found) => found?.status?.operation?.id === operation.id && isIdle(found) && found.status.state === 'started',
      )
      expect(after?.status?.operation?.status).toBe(isWell ? 'succeeded' : 'failed')
      const left = isWell ? 'other-linux 1' : 'tiny-linux 1'
      await until(
        'one disk',
        async () => disks(),
        (observed) => JSON.stringify(observed) === JSON.stringify([left]),
      )
      const kept = JSON.stringify([isWell ? operation.id : 'web'])
      await until('one storage', storages, (observed) => JSON.stringify(observed) === kept)
      expect(cloud.host.running()).toMatchObject([{ incarnation: isWell ? 2 : 3 }])
      await cloud.kubectl.delete(ManagedMachine, key)
      await removeServer()
    },
  )
})

function fail(): never {
  throw new Error('the server is gone')
}
