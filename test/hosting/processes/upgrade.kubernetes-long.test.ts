import { afterAll, beforeAll, expect, test } from 'vitest'
import { findKubernetes } from '../../../hosting/processes/programs.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { until } from '../../eventually.ts'
import { whileWriting } from './config-map-writer.ts'
import { adminOf, type Hosted, isWhole, newDesired, openHosted, untilState } from './hosted.ts'

/** The minor before takes minutes to build: where it is not, only what needs it stays out. */
const releases = (await findKubernetes())?.releases.map(({ release }) => release) ?? []
const from = releases[0] ?? ''
let hosted: Hosted
const desired = newDesired({ replicas: 3, release: from })
beforeAll(async () => {
  hosted = await openHosted()
  await hosted.host.ensure(desired)
})
afterAll(() => hosted.end())

test('three replicas get ready with quorum, and what is killed comes back', async () => {
  const state = await untilState(hosted, desired.id, isWhole)
  expect(state).toMatchObject({ hasEtcdQuorum: true, apiServersReady: 3, etcdMembersReady: 3, release: from })
  const programs = ['etcd-1', 'kube-apiserver-0', 'kube-controller-manager', 'kube-scheduler']
  for (const program of programs) {
    const pidOf = () => hosted.host.pid(desired.id, program)
    const before = await until(`${program} to run`, pidOf, (pid) => pid !== undefined)
    signalProcess(before ?? 0, 'SIGKILL')
    await until(`${program} to run again`, pidOf, (pid) => pid !== undefined && pid !== before)
  }
  expect((await untilState(hosted, desired.id, isWhole)).hasEtcdQuorum).toBe(true)
})

test.runIf(releases.length > 1)('an upgrade to the next minor loses no write', async () => {
  const admin = await adminOf(hosted, desired.id)
  const leastReady: number[] = []
  const written = await whileWriting(admin, async () => {
    await hosted.host.ensure({ ...desired, release: '1.36.3' })
    await untilState(hosted, desired.id, (now) => {
      leastReady.push(now.apiServersReady)
      return isWhole(now) && now.release === '1.36.3'
    })
  })
  expect(written).toMatchObject({ failed: [], lost: [] })
  expect(written.count).toBeGreaterThan(10)
  expect(Math.min(...leastReady)).toBeGreaterThanOrEqual(2)
  const { body } = await admin.send('GET', '/version')
  expect(body['gitVersion']).toBe('v1.36.3')
})

test.runIf(releases.length > 1)('it does not go back, and does not change its size', async () => {
  const now = { ...desired, release: '1.36.3' }
  await expect(hosted.host.ensure(desired)).rejects.toThrow('older minor')
  await expect(hosted.host.ensure({ ...now, replicas: 1 })).rejects.toThrow('replicas')
  await expect(hosted.host.ensure({ ...now, release: '1.99.0' })).rejects.toThrow('not offered')
})
