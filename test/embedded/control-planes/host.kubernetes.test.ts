import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminOf, type Hosted, isWhole, newDesired, openHosted, untilState } from './hosted.ts'

let hosted: Hosted
beforeAll(async () => {
  hosted = await openHosted()
})
afterAll(() => hosted.end())

test('three replicas get ready with quorum', async () => {
  const desired = newDesired({ replicas: 3 })
  await hosted.host.ensure(desired)
  const state = await untilState(hosted, desired.id, isWhole)
  expect(state).toMatchObject({ hasEtcdQuorum: true, apiServersReady: 3, etcdMembersReady: 3, release: '1.36.3' })
  const admin = await adminOf(hosted, desired.id)
  expect((await admin.send('GET', '/api/v1/namespaces/kube-system')).status).toBe(200)
})
