/** Rebuilds and changes of plans with real controllers, a real agent and a real database. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { findOperation } from '../../../../../db/operation/index.ts'
import { Secret } from '../../../../../kit/kube/object.ts'
import { nodeNamespace } from '../../../../../resources/instance/index.ts'
import { NODE } from '../../../cloud.ts'
import { until } from '../../../until.ts'
import { type ServerObject, useRebuilds } from './rebuilds.ts'

const world = useRebuilds()
const {
  read,
  isIdle,
  ended,
  create,
  rebuild,
  changePlan,
  begin,
  disks,
  storages,
  operations,
  sizes,
  everywhere,
  instanceOf,
  removeServer,
} = world

describe('with controllers that live', () => {
  let stop: () => Promise<void>
  beforeAll(() => {
    stop = world.cloud.startControllers()
  })
  afterAll(() => stop())
  afterEach(removeServer)

  test('started | trial: it ends when the server is deleted, and both disks go', async () => {
    await create('started')
    const operation = await rebuild({}, { image_version: '2' }, { deadlineSeconds: 7_200 })
    await until(
      'the guest with the new disk',
      read,
      (server) => server?.status?.bootStorageId === operation.id && server.status.operation?.step === 'started',
    )
    expect((await storages()).toSorted()).toEqual(['web', operation.id].toSorted())
    await removeServer()
    expect((await findOperation(world.database.db, world.accountId, operation.id))?.status).toBe('cancelled')
    await create('stopped')
  })

  test('stopped | rebuild: a new disk from another template, and the old one is deleted', async () => {
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
    expect(world.cloud.host.running()).toMatchObject([{ incarnation: 2 }])
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
      world.cloud.kubectl.create(Secret, {
        metadata: { name, namespace: world.namespace },
        spec: undefined,
        data: { userData: Buffer.from(text).toString('base64') },
      })
    const copy = async (server: ServerObject) => {
      const text = (
        await world.cloud.kubectl.get(Secret, {
          namespace: nodeNamespace(NODE),
          name: `user-data-${server.metadata.uid}`,
        })
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
      (await world.cloud.kubectl.list(Secret, { namespace: world.namespace })).items.map(
        ({ metadata }) => metadata.name,
      ),
    ]).toEqual(['second', ['web-user-data-2']])
    const last = await rebuild(
      { userDataSecretName: null },
      { previous_user_data_secret: 'web-user-data-2', previous_boot_storage: operation.id },
    )
    expect((await ended(last)).status?.operation?.status).toBe('succeeded')
    expect([
      await copy(server),
      (await world.cloud.kubectl.list(Secret, { namespace: world.namespace })).items,
    ]).toEqual([undefined, []])
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
    expect(await findOperation(world.database.db, world.accountId, operation.id)).toMatchObject({
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
    expect(world.cloud.host.running()).toHaveLength(1)
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
