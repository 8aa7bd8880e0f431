import { afterAll, beforeAll, expect, test } from 'vitest'
import { findKubernetes } from '../../../embedded/control-planes/programs.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { until } from '../../eventually.ts'
import { adminOf, type Hosted, isWhole, newDesired, openHosted, READY_MILLISECONDS, untilState } from './hosted.ts'

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
    await until(`${program} to run again`, pidOf, (pid) => pid !== undefined && pid !== before, READY_MILLISECONDS)
  }
  expect((await untilState(hosted, desired.id, isWhole)).hasEtcdQuorum).toBe(true)
})

test.runIf(releases.length > 1)('an upgrade to the next minor loses no write', async () => {
  const admin = await adminOf(hosted, desired.id)
  const upgrading = new AbortController()
  const failed: string[] = []
  let written = 0
  /** As a client does that tries another server. */
  const write = async (name: string) => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }
    for (let tries = 1; tries <= 5; tries++) {
      const status = await admin.send('POST', '/api/v1/namespaces/default/configmaps', body).then(
        (answer) => answer.status,
        () => 0,
      )
      if (status === 201 || (tries > 1 && status === 409)) return void (written += 1)
    }
    failed.push(name)
  }
  const writing = (async () => {
    for (let number = 0; !upgrading.signal.aborted; number++) await write(`written-${number}`)
  })()
  const leastReady: number[] = []
  await hosted.host.ensure({ ...desired, release: '1.36.3' })
  const state = await untilState(hosted, desired.id, (now) => {
    leastReady.push(now.apiServersReady)
    return isWhole(now) && now.release === '1.36.3'
  }).finally(() => upgrading.abort())
  await writing
  expect({ failed, release: state.release }).toEqual({ failed: [], release: '1.36.3' })
  expect(written).toBeGreaterThan(10)
  expect(Math.min(...leastReady)).toBeGreaterThanOrEqual(2)
  const { body } = await admin.send('GET', '/version')
  expect(body['gitVersion']).toBe('v1.36.3')
  const listed = await admin.send('GET', '/api/v1/namespaces/default/configmaps?limit=5000')
  const names = JSON.stringify(listed.body)
  for (let number = 0; number < written; number++) expect(names).toContain(`"written-${number}"`)
})

test.runIf(releases.length > 1)('it does not go back, and does not change its size', async () => {
  const now = { ...desired, release: '1.36.3' }
  await expect(hosted.host.ensure(desired)).rejects.toThrow('older minor')
  await expect(hosted.host.ensure({ ...now, replicas: 1 })).rejects.toThrow('replicas')
  await expect(hosted.host.ensure({ ...now, release: '1.99.0' })).rejects.toThrow('not offered')
})
