/** What the Kubernetes API refuses reaches customers as a refusal with its reason. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Namespace } from '../../kit/kube/object.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Network } from '../../resources/network/index.ts'
import { useDatabase } from '../database.ts'
import { type Cloud, openCloud } from './cloud.ts'

const database = useDatabase()
let cloud: Cloud
beforeAll(async () => {
  cloud = await openCloud(database.db)
})
afterAll(() => cloud.close())

test('a namespace that is being deleted takes nothing new: 409 with a reason', async () => {
  const ada = await cloud.signUp('ada@example.com')
  const create = (name: string) =>
    ada.send('POST', '/v1/server-groups', { body: { zone: cloud.zone, name, policy: 'strict' } })
  const first = await create('first')
  expect(first.status, first.text).toBe(201)
  const namespace = accountNamespace(ada.accountId)
  await cloud.admin.create(Network, {
    metadata: { name: 'held', namespace, finalizers: ['example.com/held'] },
    spec: { zone: cloud.zone, name: 'held', labels: {}, dhcpEnabled: true, dnsServers: [] },
  } as never)
  await cloud.admin.delete(Namespace, { name: namespace })
  const refused = await create('second')
  expect([refused.status, refused.body['reason']], refused.text).toEqual([409, 'state_not_allowed'])
})
