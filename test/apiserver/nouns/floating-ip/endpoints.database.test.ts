import { afterAll, beforeAll, expect, test } from 'vitest'
import { mirrorPool } from '../../../../db/public-pool/index.ts'
import { FloatingIp } from '../../../../resources/floating-ip/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { useDatabase } from '../../../database.ts'
import { progressOf } from '../../../progress.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
  for (const person of [ada, bob])
    await person.send('POST', '/v1/ssh-keys', { body: { name: 'laptop', public_key: PUBLIC_KEY } })
  for (const [use, cidr] of [
    ['floating_ipv4', '203.0.113.0/24'],
    ['server_ipv4', '198.51.100.0/24'],
  ] as const)
    await cloud.db
      .transaction()
      .execute((tx) => mirrorPool(tx, { id: use, zone: cloud.zone, family: 'ipv4', cidr, use, state: 'active' }))
})
afterAll(() => cloud.close())

let made = 0
async function makeServer(more: object = { public_ipv4: true }, by = ada): Promise<string> {
  const body = { zone: cloud.zone, hostname: `fip-${(made += 1)}`, plan: 'tiny', template: 'tiny-linux', ...more }
  return (await by.send('POST', '/v1/servers', { body })).body.server.id
}
const allocate = (more: object = {}) => ada.send('POST', '/v1/floating-ips', { body: { zone: cloud.zone, ...more } })
const assign = (id: string, body: object) => ada.send('POST', `/v1/floating-ips/${id}/assign`, { body })
const keyOf = (name: string) => ({ namespace: accountNamespace(ada.accountId), name })
/** What a controller would report. */
async function settle(id: string): Promise<void> {
  const object = await cloud.admin.get(FloatingIp, keyOf(id))
  if (object?.spec.operation === undefined) throw new Error('no operation')
  const status = { operation: progressOf(object.spec.operation) }
  cloud.caches.of(FloatingIp).apply(await cloud.admin.patch(FloatingIp, keyOf(id), { status }, 'status'))
}

test('one is allocated unassigned, read, listed and audited; another account sees nothing of it', async () => {
  const reply = await allocate()
  expect(reply.status, reply.text).toBe(201)
  const { floating_ip: ip } = reply.body
  expect(ip).toEqual({
    id: ip.id,
    zone: cloud.zone,
    address: expect.stringMatching(/^203\.0\.113\.\d+$/),
    server_id: null,
    target: null,
    created_at: ip.created_at,
  })
  expect(reply.body).not.toHaveProperty('operation')
  expect(await cloud.auditOf(reply)).toMatchObject([
    { action: 'floating_ip.allocate', outcome: 'success', resource_id: ip.id },
  ])
  expect((await ada.send('GET', `/v1/floating-ips/${ip.id}`)).body.floating_ip).toEqual(ip)
  const list = (await ada.send('GET', '/v1/floating-ips')).body
  expect(list).toMatchObject({ items: expect.arrayContaining([ip]), next_cursor: null })
  expect((await bob.send('GET', `/v1/floating-ips/${ip.id}`)).status).toBe(404)
  expect((await bob.send('GET', '/v1/floating-ips')).body.items).toEqual([])
})

test('one is allocated and assigned in one step', async () => {
  const server = await makeServer()
  const reply = await allocate({ server_id: server })
  expect(reply.status, reply.text).toBe(201)
  const { id } = reply.body.floating_ip
  expect(reply.body).toMatchObject({
    floating_ip: { server_id: server, target: 'public' },
    operation: { kind: 'floating_ip.sync', status: 'pending', floating_ip_id: id },
  })
  const released = await ada.send('DELETE', `/v1/floating-ips/${id}`)
  expect([released.status, released.body.reason]).toEqual([409, 'operation_in_progress'])
  await settle(id)
  expect((await ada.send('DELETE', `/v1/floating-ips/${id}`)).body).toMatchObject({ status: 409, reason: 'in_use' })
})

test('one is moved, unassigned and released, each by an operation with an entry', async () => {
  const [one, other] = [await makeServer(), await makeServer()]
  const { id } = (await allocate({ server_id: one })).body.floating_ip
  await settle(id)
  const moved = await assign(id, { server_id: other })
  expect(moved.status, moved.text).toBe(202)
  expect(moved.body.operation).toMatchObject({ kind: 'floating_ip.sync', floating_ip_id: id })
  expect(await cloud.auditOf(moved)).toMatchObject([
    { action: 'floating_ip.assign', changes: [{ field: 'server_id', before: one, after: other }] },
  ])
  expect((await ada.send('GET', `/v1/floating-ips/${id}`)).body.floating_ip).toMatchObject({ server_id: other })
  expect(await cloud.auditOf(await assign(id, {}))).toMatchObject([
    { action: 'floating_ip.unassign', outcome: 'failed', detail: { reason: 'operation_in_progress' } },
  ])
  await settle(id)
  const unassigned = await assign(id, {})
  expect(await cloud.auditOf(unassigned)).toMatchObject([{ action: 'floating_ip.unassign', outcome: 'success' }])
  expect((await ada.send('GET', `/v1/floating-ips/${id}`)).body.floating_ip).toMatchObject({
    server_id: null,
    target: null,
  })
  await settle(id)
  const released = await ada.send('DELETE', `/v1/floating-ips/${id}`)
  expect(released.status, released.text).toBe(202)
  expect(await cloud.auditOf(released)).toMatchObject([{ action: 'floating_ip.release', outcome: 'success' }])
})

test("one is not for another account's server, and keeps no address", async () => {
  const count = async () => (await ada.send('GET', '/v1/floating-ips')).body.items.length
  const before = await count()
  expect((await allocate({ server_id: await makeServer({}, bob) })).status).toBe(404)
  expect(await count()).toBe(before)
})
