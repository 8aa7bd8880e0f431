/** Private networks and routers through the API. No controllers run: tests say what they would. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mirrorPool } from '../../../../db/public-pool/index.ts'
import { lockNatRouter, trimRouter } from '../../../../db/router/index.ts'
import type { ResourceType } from '../../../../kit/kube/object.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import type { Operable } from '../../../../resources/operation/index.ts'
import { Router } from '../../../../resources/router/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, type Reply } from '../../cloud.ts'
import { setQuotas } from '../../../accounts.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let stranger: Person
let count = 0

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  stranger = await cloud.signUp('stranger@example.com')
  await cloud.admin.create(Zone, {
    metadata: { name: 'bare' },
    spec: { displayName: 'Bare', region: 'eu-1', isClosed: false, capabilities: [] },
  })
  await setQuotas(database.db, 1_000)
  const pool = { family: 'ipv4', zone: cloud.zone, state: 'active' } as const
  await database.db.transaction().execute(async (tx) => {
    await mirrorPool(tx, { ...pool, id: 'floating', use: 'floating_ipv4', cidr: '198.51.100.0/29' })
    await mirrorPool(tx, { ...pool, id: 'edge', use: 'edge', cidr: '203.0.113.0/30' })
  })
})
afterAll(() => cloud.close())

/** What its controller says when an operation has succeeded. */
async function finish(type: typeof Network | typeof Router, id: string, person = owner): Promise<void> {
  const key = { namespace: accountNamespace(person.accountId), name: id }
  const kind = type as ResourceType<Operable['spec'], Operable['status']>
  const operation = (await cloud.admin.get(kind, key))?.spec.operation
  if (operation === undefined) throw new Error(`${id} has no operation`)
  const { requestedAt, deadlineAt, actor } = operation
  const progress = { id: operation.id, kind: operation.kind, actor, deadlineAt, createdAt: requestedAt }
  const ended = { ...progress, status: 'succeeded', step: 'installed', stepIndex: 3, stepCount: 3, error: '' }
  await cloud.admin.patch(kind, key, { status: { operation: ended } }, 'status')
}

const network = async (body: object = {}, person = owner): Promise<{ id: string; ipv4_cidr: string }> => {
  const reply = await person.send('POST', '/v1/networks', {
    body: { zone: cloud.zone, name: `network-${++count}`, ...body },
  })
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  await finish(Network, reply.body['network'].id, person)
  return reply.body['network']
}
const router = async (body: object = {}): Promise<string> => {
  const reply = await owner.send('POST', '/v1/routers', {
    body: { zone: cloud.zone, name: `router-${++count}`, ...body },
  })
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  await finish(Router, reply.body['router'].id)
  return reply.body['router'].id
}
const attach = (routerId: string, networkId: string) =>
  owner.send('POST', `/v1/routers/${routerId}/networks`, { body: { network_id: networkId } })
const used = async (name: string, { accountId } = owner) =>
  (
    await database.db
      .selectFrom('account_quota')
      .select('used')
      .where('account_id', '=', accountId)
      .where('name', '=', name)
      .executeTakeFirst()
  )?.used
const problem = ({ status, body }: Reply) => [status, body['reason'], body['resource']?.id, body['errors']?.[0]?.field]

describe('a network', () => {
  test('has a unique range and a /64, and an operation that names it', async () => {
    const before = await used('networks')
    const reply = await owner.send('POST', '/v1/networks', {
      body: { zone: cloud.zone, name: 'whole', dns_servers: ['2001:DB8::0:53'], labels: { tier: 'back' } },
    })
    expect(reply.status).toBe(202)
    expect(reply.body).toMatchObject({
      network: {
        zone: cloud.zone,
        region: 'eu-1',
        name: 'whole',
        ipv4_cidr: expect.stringMatching(/^10\.0\.\d+\.0\/24$/) as string,
        ipv6_prefix: expect.stringMatching(/^fd[0-9a-f:]+\/64$/) as string,
        gateway_ipv4: null,
        dhcp_enabled: true,
        dns_servers: ['2001:db8::53'],
        router_id: null,
        edge_id: null,
        server_count: 0,
        labels: { tier: 'back' },
      },
      operation: { kind: 'network.sync', status: 'pending', step: 'claimed', step_count: 3 },
    })
    const { id } = reply.body['network']
    expect((await owner.send('GET', `/v1/networks/${id}`)).body['network']).toMatchObject({ id, name: 'whole' })
    expect(await used('networks')).toBe((before ?? 0) + 1)
    const byLabel = await owner.send('GET', '/v1/networks?label=tier=back')
    expect(byLabel.body['items'].map((item: { id: string }) => item.id)).toEqual([id])
    const { items } = (await owner.send('GET', '/v1/audit')).body
    expect(items[0]).toMatchObject({ action: 'network.create', resource_id: id, resource_type: 'network' })
  })

  test('has the first free range, also beside one that was chosen', async () => {
    await network({ ipv4_cidr: '10.0.0.0/17' }, stranger)
    expect((await network({}, stranger)).ipv4_cidr).toBe('10.0.128.0/24')
    expect((await network({}, stranger)).ipv4_cidr).toBe('10.0.129.0/24')
  })

  test('says which capability its zone lacks', async () => {
    const reply = await owner.send('POST', '/v1/networks', { body: { zone: 'bare', name: 'x' } })
    expect(reply.body['capability']).toBe('private_networks')
    const zones = (await owner.send('GET', '/v1/zones')).body['items'] as { name: string; capabilities: string[] }[]
    expect(
      zones.filter(({ capabilities }) => capabilities.includes('private_networks')).map(({ name }) => name),
    ).toEqual([cloud.zone])
  })

  test('has a name that no other of the account in the zone has', async () => {
    const { id } = await network({ name: 'taken' })
    const again = { body: { zone: cloud.zone, name: 'taken' } }
    expect(problem(await owner.send('POST', '/v1/networks', again))).toEqual([409, 'name_taken', id, undefined])
    expect((await stranger.send('POST', '/v1/networks', again)).status).toBe(202)
    const other = await network()
    const renamed = await owner.send('PATCH', `/v1/networks/${other.id}`, { body: { name: 'taken' } })
    expect(problem(renamed)).toEqual([409, 'name_taken', id, undefined])
    expect((await owner.send('PATCH', `/v1/networks/${id}`, { body: { name: 'given up' } })).status).toBe(200)
    expect((await owner.send('PATCH', `/v1/networks/${other.id}`, { body: { name: 'taken' } })).status).toBe(200)
  })

  test('changes at once, or by an operation where hosts are informed', async () => {
    const { id } = await network()
    const path = `/v1/networks/${id}`
    const quick = await owner.send('PATCH', path, { body: { labels: { a: 'b' }, dhcp_enabled: true } })
    expect([quick.status, quick.body['operation'], quick.body['network'].labels]).toEqual([200, undefined, { a: 'b' }])
    const slow = await owner.send('PATCH', path, { body: { name: 'slow', dhcp_enabled: false } })
    expect(slow.status).toBe(202)
    expect(slow.body).toMatchObject({
      network: { name: 'slow', dhcp_enabled: false, active_operation: { id: slow.body['operation'].id } },
      operation: { kind: 'network.sync' },
    })
    const busy = await owner.send('PATCH', path, { body: { dns_servers: ['1.1.1.1'] } })
    expect([busy.status, busy.body['reason']]).toEqual([409, 'operation_in_progress'])
    expect((await owner.send('PATCH', path, { body: { name: 'still quick' } })).status).toBe(200)
    expect(problem(await owner.send('DELETE', path))[1]).toBe('operation_in_progress')
    await finish(Network, id)
    expect((await owner.send('PATCH', path, { body: { dns_servers: ['1.1.1.1'] } })).status).toBe(202)
  })

  test('is deleted once nothing is in it, and takes nothing from then on', async () => {
    const { id } = await network()
    const routerId = await router({ network_ids: [id] })
    expect((await owner.send('GET', `/v1/networks/${id}`)).body['network']).toMatchObject({
      router_id: routerId,
      gateway_ipv4: expect.stringMatching(/\.1$/) as string,
    })
    expect(problem(await owner.send('DELETE', `/v1/networks/${id}`))).toEqual([409, 'in_use', routerId, undefined])
    const free = await network()
    const gone = await owner.send('DELETE', `/v1/networks/${free.id}`)
    expect([gone.status, gone.body['operation'].kind]).toEqual([202, 'network.sync'])
    expect((await attach(routerId, free.id)).status).toBe(404)
  })

  test('stays on its way out when other deletions of it are refused', async () => {
    const [{ id }, routerId] = [await network(), await router()]
    const isEnding = (table: 'network' | 'router', of: string) =>
      database.db.selectFrom(table).select('is_ending').where('id', '=', of).executeTakeFirstOrThrow()
    for (const path of [`/v1/networks/${id}`, `/v1/routers/${routerId}`]) {
      const replies = await Promise.all(Array.from({ length: 5 }, () => owner.send('DELETE', path)))
      expect(replies.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409, 409])
    }
    expect([await isEnding('network', id), await isEnding('router', routerId)]).toEqual([
      { is_ending: true },
      { is_ending: true },
    ])
  })

  test('that is still being made can be deleted', async () => {
    const { body } = await owner.send('POST', '/v1/networks', { body: { zone: cloud.zone, name: 'early' } })
    expect((await owner.send('DELETE', `/v1/networks/${body['network'].id}`)).status).toBe(202)
  })

  test('is 404 for others', async () => {
    const { id } = await network()
    const routerId = await router()
    for (const reply of [
      await stranger.send('GET', `/v1/networks/${id}`),
      await stranger.send('PATCH', `/v1/networks/${id}`, { body: { name: 'mine' } }),
      await stranger.send('DELETE', `/v1/networks/${id}`),
      await stranger.send('POST', `/v1/routers/${routerId}/networks`, { body: { network_id: id } }),
      await stranger.send('POST', '/v1/routers', { body: { zone: cloud.zone, name: 'x', network_ids: [id] } }),
    ])
      expect(reply.status).toBe(404)
  })
})

describe('a router', () => {
  test('has the first address of each network, and one outside with NAT', async () => {
    const back = await network({ ipv4_cidr: '10.50.0.0/24' })
    const reply = await owner.send('POST', '/v1/routers', {
      body: {
        zone: cloud.zone,
        name: 'whole',
        nat_enabled: true,
        network_ids: [back.id],
        static_routes: [{ destination: '10.9.0.0/16', next_hop: '10.50.0.9' }],
        labels: { a: 'b' },
      },
    })
    expect(reply.status, JSON.stringify(reply.body)).toBe(202)
    const { id } = reply.body['router']
    expect(reply.body).toMatchObject({
      router: {
        name: 'whole',
        nat_enabled: true,
        public_ipv4: '203.0.113.2', // the only one of the edge's pool
        networks: [{ network_id: back.id, ipv4_address: '10.50.0.1' }],
        static_routes: [{ destination: '10.9.0.0/16', next_hop: '10.50.0.9', comment: '' }],
        is_healthy: false,
        labels: { a: 'b' },
      },
      operation: { kind: 'router.sync', router_id: id },
    })
    await finish(Router, id)
    // The edge's pool is empty: routers have floating addresses then.
    const second = await router({ nat_enabled: true })
    const shown = (await owner.send('GET', `/v1/routers/${second}`)).body['router']
    expect(shown.public_ipv4).toMatch(/^198\.51\.100\./)
    expect(await database.db.transaction().execute((tx) => lockNatRouter(tx, idOf(back.id)))).toBe(id)
  })

  const idOf = (networkId: string) => ({ accountId: owner.accountId, networkId })

  test('is refused NAT where no address is left, and keeps what it had', async () => {
    const ids: string[] = []
    for (;;) {
      const reply = await owner.send('POST', '/v1/routers', {
        body: { zone: cloud.zone, name: `filling-${++count}`, nat_enabled: true },
      })
      if (reply.status !== 202) {
        expect([reply.status, reply.body['reason']]).toEqual([503, 'no_free_address'])
        break
      }
      ids.push(reply.body['router'].id)
    }
    expect(ids.length).toBeGreaterThan(0)
    const plain = await router()
    const changed = await owner.send('PATCH', `/v1/routers/${plain}`, { body: { nat_enabled: true } })
    expect([changed.status, changed.body['reason']]).toEqual([503, 'no_free_address'])
    expect((await owner.send('GET', `/v1/routers/${plain}`)).body['router']).toMatchObject({
      nat_enabled: false,
      public_ipv4: null,
      active_operation: null,
    })
    // An address that is given up is another's once nothing routes to it.
    const [first = ''] = ids
    await finish(Router, first)
    const off = await owner.send('PATCH', `/v1/routers/${first}`, { body: { nat_enabled: false } })
    expect([off.status, off.body['router'].public_ipv4]).toEqual([202, null])
    expect((await owner.send('PATCH', `/v1/routers/${plain}`, { body: { nat_enabled: true } })).status).toBe(503)
    const id = { accountId: owner.accountId, routerId: first }
    await database.db.transaction().execute((tx) => trimRouter(tx, id))
    const on = await owner.send('PATCH', `/v1/routers/${plain}`, { body: { nat_enabled: true } })
    expect([on.status, on.body['router'].public_ipv4]).toEqual([
      202,
      expect.stringMatching(/^198\.51\.100\./) as string,
    ])
  })

  test('joins networks that are at no other and do not overlap', async () => {
    const [one, two] = [await router(), await router()]
    const back = await network({ ipv4_cidr: '10.60.0.0/16' })
    const attached = await attach(one, back.id)
    expect(attached.status, JSON.stringify(attached.body)).toBe(202)
    expect(attached.body['router'].networks).toEqual([
      {
        network_id: back.id,
        ipv4_address: '10.60.0.1',
        ipv6_address: expect.stringMatching(/^fd.*::1$/) as string,
      },
    ])
    const busy = await attach(one, (await network()).id)
    expect([busy.status, busy.body['reason']]).toEqual([409, 'operation_in_progress'])
    await finish(Router, one)
    expect(problem(await attach(two, back.id))).toEqual([409, 'in_use', one, undefined])
    expect(problem(await attach(one, back.id))).toEqual([409, 'in_use', one, undefined])
    const inside = await network({ ipv4_cidr: '10.60.7.0/24' })
    expect(problem(await attach(one, inside.id))).toEqual([409, 'in_use', back.id, undefined])
    expect((await attach(two, inside.id)).status).toBe(202)
    expect((await attach(one, 'nothing')).status).toBe(404)
  })

  test('has one winner where two want a network at once', async () => {
    const back = await network()
    const routers = await Promise.all([router(), router(), router()])
    const replies = await Promise.all(routers.map((id) => attach(id, back.id)))
    expect(replies.map(({ status }) => status).toSorted()).toEqual([202, 409, 409])
    const rows = await database.db.selectFrom('router_network').selectAll().where('network_id', '=', back.id).execute()
    expect(rows).toHaveLength(1)
    const winner = routers[replies.findIndex(({ status }) => status === 202)]
    expect(rows[0]?.router_id).toBe(winner)
  })

  test('releases a network, which another router gets once nothing routes there', async () => {
    const back = await network()
    const [one, two] = [await router({ network_ids: [back.id] }), await router()]
    const path = `/v1/routers/${one}/networks/${back.id}`
    expect(problem(await owner.send('DELETE', `/v1/routers/${one}`))).toEqual([409, 'in_use', back.id, undefined])
    expect((await owner.send('DELETE', `/v1/routers/${two}/networks/${back.id}`)).status).toBe(404)
    const detached = await owner.send('DELETE', path)
    expect([detached.status, detached.body['operation'].kind]).toEqual([202, 'router.sync'])
    expect((await owner.send('DELETE', path)).status).toBe(404)
    expect((await attach(two, back.id)).status).toBe(409)
    await finish(Router, one)
    await database.db.transaction().execute((tx) => trimRouter(tx, { accountId: owner.accountId, routerId: one }))
    expect((await attach(two, back.id)).status).toBe(202)
    expect((await owner.send('DELETE', `/v1/routers/${one}`)).status).toBe(202)
    const actions = ((await owner.send('GET', '/v1/audit')).body['items'] as { action: string }[])
      .slice(0, 3)
      .map(({ action }) => action)
    expect(actions).toEqual(['router.delete', 'router.attach_network', 'router.attach_network'])
  })

  test('changes at once, or by an operation where it leads elsewhere', async () => {
    const back = await network({ ipv4_cidr: '10.70.0.0/24' })
    const id = await router({ network_ids: [back.id] })
    const path = `/v1/routers/${id}`
    expect((await owner.send('PATCH', path, { body: { name: 'quick', labels: {}, static_routes: [] } })).status).toBe(
      200,
    )
    const routes = [{ destination: 'FD09::/64', next_hop: '10.70.0.9' }]
    expect(problem(await owner.send('PATCH', path, { body: { static_routes: routes } }))[3]).toBe(
      'static_routes.0.next_hop',
    )
    const led = await owner.send('PATCH', path, {
      body: { static_routes: [{ destination: '10.9.0.0/16', next_hop: '10.70.0.9', comment: 'secret' }] },
    })
    expect([led.status, led.body['router'].static_routes[0].comment]).toEqual([202, 'secret'])
    const [entry] = (await owner.send('GET', '/v1/audit')).body['items']
    expect(entry.action).toBe('router.update')
    expect(JSON.stringify(entry)).not.toContain('secret')
  })
})
