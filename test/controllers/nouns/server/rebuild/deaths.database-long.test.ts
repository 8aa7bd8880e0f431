/** Rebuilds and changes of plans by controllers that die all the time, with a real agent and a real database. */
import { afterEach, describe, expect, test } from 'vitest'
import { nodeNamespace } from '../../../../../resources/instance/index.ts'
import { ManagedMachine } from '../../../../../resources/managed-machine/index.ts'
import { type Mortals, NODE } from '../../../cloud.ts'
import { until } from '../../../until.ts'
import { useRebuilds } from './rebuilds.ts'

const world = useRebuilds()
const { read, isIdle, ended, create, rebuild, changePlan, disks, storages, sizes, everywhere, removeServer } = world

describe('with controllers that die', () => {
  let mortals: Mortals | undefined
  afterEach(() => mortals?.stop())

  test.each([1, 2, 3])('after every %i writes, a plan is changed and a server rebuilt once', async (writesMaximum) => {
    mortals = world.cloud.startMortals(writesMaximum)
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
      mortals = world.cloud.startMortals(writes)
      const before = await create('started')
      const key = { namespace: nodeNamespace(NODE), name: before.metadata.uid ?? '' }
      const server = { namespace: world.namespace, name: 'web', uid: key.name }
      await world.cloud.kubectl.create(ManagedMachine, { metadata: key, spec: { server, managedBy: 'database:shop' } })
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
        await world.cloud.kubectl.patch(ManagedMachine, key, { status }, 'status')
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
      expect(world.cloud.host.running()).toMatchObject([{ incarnation: isWell ? 2 : 3 }])
      await world.cloud.kubectl.delete(ManagedMachine, key)
      await removeServer()
    },
  )
})

function fail(): never {
  throw new Error('the server is gone')
}
