/** A node that vanished without notice, and the next one that has its address: what API servers ask it for does not go
 *  into the tunnel of the first. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../eventually.ts'
import { adminOf, type Hosted, isWhole, newDesired, openHosted, untilState } from './hosted.ts'
import { ADDRESS, canBeReached, joinAsKubelet, type Kubelet } from './kubelet.ts'

let hosted: Hosted
let worker: Kubelet
beforeAll(async () => {
  hosted = await openHosted()
})
afterAll(async () => {
  await worker?.end()
  await hosted?.end()
})

test.runIf(canBeReached)('the tunnel of a node that says nothing is closed', async () => {
  const desired = newDesired()
  const { id } = desired
  await hosted.host.ensure(desired)
  const state = await untilState(hosted, id, isWhole)
  const { token } = await hosted.host.joinToken(id, 'abcdef', 'pool-1', 600)
  worker = await joinAsKubelet({ state, token, name: 'worker-1', address: ADDRESS })
  await worker.report(true)
  const request = await worker.askToServe(['worker-1', ADDRESS])
  await hosted.host.approveServing(id, request)
  await worker.serve(request)
  const admin = await adminOf(hosted, id)
  const ask = () => admin.send('GET', '/api/v1/nodes/worker-1/proxy/hello')
  await worker.startTunnel()
  await until('the node to be reached', ask, ({ status }) => status === 200)
  worker.freezeTunnel()
  await worker.startTunnel()
  const reached = await until('the one after it', ask, ({ status }) => status === 200)
  expect(reached.body).toEqual({ text: 'worker-1 says hello' })
})
