import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { claimNetwork } from '../../../../db/network/index.ts'
import { listInterfaces } from '../../../../db/network-interface/index.ts'
import { makeNamespace } from '../../../../kit/kube/namespaces.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace, accountNamespaceOf } from '../../../../resources/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { progressOf } from '../../../progress.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person
let networkId: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
  await ada.send('POST', '/v1/ssh-keys', { body: { name: 'laptop', public_key: PUBLIC_KEY } })
  for (const { accountId } of [ada, bob]) await makeNamespace(cloud.admin, accountNamespaceOf(accountId))
  networkId = await makeNetwork('back', '10.1.0.0/24')
})
afterAll(() => cloud.close())

const namespace = () => accountNamespace(ada.accountId)

/** As its controller would have brought it about. */
async function makeNetwork(name: string, ipv4Cidr: string, zone = cloud.zone, owner = ada): Promise<string> {
  const id = newUuid(systemRandom)
  const of = { accountId: owner.accountId, networkId: id, zone, name, ipv4Cidr }
  const { ipv6Prefix } = await database.db.transaction().execute((tx) => claimNetwork(tx, of, systemRandom))
  const key = { namespace: accountNamespace(owner.accountId), name: id }
  await cloud.admin.create(Network, {
    metadata: key,
    spec: { zone, name, ipv4Cidr, dnsServers: [], dhcpEnabled: true, labels: {} },
  })
  cloud.caches.of(Network).apply(await cloud.admin.patch(Network, key, { status: { ipv4Cidr, ipv6Prefix } }, 'status'))
  return id
}

let made = 0
const create = (more: object = {}) =>
  ada.send('POST', '/v1/servers', {
    body: { zone: cloud.zone, hostname: `port-${(made += 1)}`, plan: 'tiny', template: 'tiny-linux', ...more },
  })
/** What a controller would report. */
async function settle(id: string): Promise<void> {
  const key = { namespace: namespace(), name: id }
  const server = await cloud.admin.get(Server, key)
  if (server?.spec.operation === undefined) throw new Error('no such server')
  const operation = progressOf(server.spec.operation)
  const status = { state: 'started', nodeName: cloud.node, macAddress: '52:54:00:00:00:01', operation }
  cloud.caches.of(Server).apply(await cloud.admin.patch(Server, key, { status }, 'status'))
}
async function createSettled(more: object = {}): Promise<string> {
  const { body } = await create(more)
  await settle(body.server.id)
  return body.server.id
}
const attach = (id: string, body: object = { network_id: networkId }, by = ada) =>
  by.send('POST', `/v1/servers/${id}/interfaces`, { body })
const interfacesOf = async (id: string) => (await ada.send('GET', `/v1/servers/${id}/interfaces`)).body

test('a list shows the interfaces and the firewall of each server when it is asked to', async () => {
  const [alone, attached] = [await createSettled(), await createSettled({ networks: [{ network_id: networkId }] })]
  const query = `id=${alone}&id=${attached}`
  const { items } = (await ada.send('GET', `/v1/servers?include=parts&${query}`)).body
  for (const { id, parts } of items) {
    expect(parts.interfaces).toEqual((await interfacesOf(id)).items)
    expect({ firewall: parts.firewall }).toEqual((await ada.send('GET', `/v1/servers/${id}/firewall`)).body)
  }
  expect(items.map(({ parts }: { parts: { interfaces: [] } }) => parts.interfaces.length).toSorted()).toEqual([1, 2])
  const { items: short } = (await ada.send('GET', `/v1/servers?${query}`)).body
  expect(short).toEqual(items.map(({ parts: _parts, ...server }: { parts: object }) => server))
  expect((await ada.send('GET', `/v1/servers?include=parts&hostname=nobody`)).body.items).toEqual([])
  expect((await bob.send('GET', `/v1/servers?include=parts&${query}`)).body.items).toEqual([])
})

test('a server has its public interface alone', async () => {
  const id = await createSettled()
  const uid = (await cloud.admin.get(Server, { namespace: namespace(), name: id }))?.metadata.uid
  expect(await interfacesOf(id)).toMatchObject({
    items: [{ id: uid, kind: 'public', index: 0, network_id: null, mac_address: '52:54:00:00:00:01' }],
    next_cursor: null,
  })
  expect((await bob.send('GET', `/v1/servers/${id}/interfaces`)).status).toBe(404)
})

describe('attach_server_network', () => {
  test('answers the interface and its operation, with addresses that nobody else has', async () => {
    const id = await createSettled()
    const reply = await attach(id)
    expect(reply.status, reply.text).toBe(202)
    expect(reply.body).toMatchObject({
      interface: {
        server_id: id,
        kind: 'private',
        network_id: networkId,
        ipv4_address: expect.stringMatching(/^10\.1\.0\.\d+$/),
        index: 1,
        floating_ip_ids: [],
      },
      operation: { kind: 'server.attach_network', status: 'pending', server_id: id },
    })
    expect((await interfacesOf(id)).items[1]).toEqual(reply.body.interface)
    expect((await ada.send('GET', `/v1/servers/${id}`)).body.server.interface_count).toBe(2)
    expect(await cloud.auditOf(reply)).toMatchObject([
      {
        action: 'server.attach_network',
        outcome: 'success',
        resource_id: id,
        changes: [{ field: 'network_id', before: null, after: networkId }],
      },
    ])
  })

  test('takes chosen addresses, which nobody else gets', async () => {
    const [one, other] = [await createSettled(), await createSettled()]
    const chosen = { network_id: networkId, ipv4_address: '10.1.0.77' }
    expect((await attach(one, chosen)).body.interface.ipv4_address).toBe('10.1.0.77')
    const reply = await attach(other, chosen)
    expect([reply.status, reply.body.reason]).toEqual([409, 'in_use'])
    expect(await listInterfaces(cloud.db, { accountId: ada.accountId, serverId: other })).toEqual([])
  })

  test.each<[string, () => Promise<object> | object, number]>([
    ['an unknown network', () => ({ network_id: newUuid(systemRandom) }), 404],
    [
      "another account's network",
      async () => ({ network_id: await makeNetwork('b', '10.2.0.0/24', cloud.zone, bob) }),
      404,
    ],
    ['an address that no host has', () => ({ network_id: networkId, ipv4_address: '10.1.0.1' }), 400],
    ['what is no address', () => ({ network_id: networkId, ipv6_address: '10.1.0.9' }), 400],
    ['a network of another zone', async () => ({ network_id: await makeNetwork('far', '10.3.0.0/24', 'eu-9z') }), 400],
  ])('refuses %s', async (_what, body, status) => {
    const id = await createSettled()
    expect((await attach(id, await body())).status).toBe(status)
    expect((await interfacesOf(id)).items).toHaveLength(1)
  })

  test('refuses a network that the server is in, and a second change at once', async () => {
    const id = await createSettled()
    await attach(id)
    expect((await attach(id)).body.reason).toBe('operation_in_progress')
    await settle(id)
    expect((await attach(id)).body).toMatchObject({ status: 409, reason: 'in_use' })
    expect((await interfacesOf(id)).items).toHaveLength(2)
  })
})

describe('detach_server_network', () => {
  test('takes the server out of the network', async () => {
    const id = await createSettled({ networks: [{ network_id: networkId }] })
    const [open, own] = (await interfacesOf(id)).items
    const path = `/v1/servers/${id}/interfaces/${own.id}`
    expect((await ada.send('DELETE', `/v1/servers/${id}/interfaces/${open.id}`)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
    expect((await ada.send('DELETE', `/v1/servers/${id}/interfaces/${newUuid(systemRandom)}`)).status).toBe(404)
    const reply = await ada.send('DELETE', path)
    expect(reply.status, reply.text).toBe(202)
    expect(reply.body.operation).toMatchObject({ kind: 'server.detach_network', server_id: id })
    expect((await cloud.admin.get(Server, { namespace: namespace(), name: id }))?.spec.networks).toEqual([])
    expect((await ada.send('GET', `/v1/servers/${id}`)).body.server.interface_count).toBe(1)
  })

  test('is refused while a floating IP leads there', async () => {
    const id = await createSettled({ networks: [{ network_id: networkId }] })
    const floating = { account_id: ada.accountId, id: 'ip', zone: cloud.zone, server_id: id, network_id: networkId }
    await cloud.db.insertInto('floating_ip').values(floating).execute()
    const [, own] = (await interfacesOf(id)).items
    expect(own.floating_ip_ids).toEqual(['ip'])
    const reply = await ada.send('DELETE', `/v1/servers/${id}/interfaces/${own.id}`)
    expect(reply.body).toMatchObject({ status: 409, reason: 'in_use', resource: { type: 'floating_ip', id: 'ip' } })
    await cloud.db.deleteFrom('floating_ip').where('id', '=', 'ip').execute()
  })
})

describe('networks of a new server', () => {
  test('are claimed with it', async () => {
    const reply = await create({ networks: [{ network_id: networkId, ipv4_address: '10.1.0.99' }] })
    expect(reply.status, reply.text).toBe(202)
    expect(reply.body.server.interface_count).toBe(2)
    const { items } = await interfacesOf(reply.body.server.id)
    expect(items[1]).toMatchObject({ network_id: networkId, ipv4_address: '10.1.0.99' })
  })

  test('are refused when unknown, named twice or too many, and nothing is held then', async () => {
    const twice = [{ network_id: networkId }, { network_id: networkId }]
    expect((await create({ networks: twice })).body).toMatchObject({
      status: 400,
      errors: [{ field: 'networks.1.network_id' }],
    })
    expect((await create({ networks: [{ network_id: newUuid(systemRandom) }] })).status).toBe(404)
    const many = Array.from({ length: 8 }, () => ({ network_id: newUuid(systemRandom) }))
    expect((await create({ networks: many })).body).toMatchObject({ status: 422, quota: { name: 'interfaces' } })
    const taken = await create({ networks: [{ network_id: networkId, ipv4_address: '10.1.0.99' }] })
    expect([taken.status, taken.body.reason]).toEqual([409, 'in_use'])
  })
})
