/** The operators' routes of public pools, and the addresses that customers get of them. No controllers run: tests say
 *  what they would. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { listAddresses, mirrorPool } from '../../../../db/public-pool/index.ts'
import { claimServer } from '../../../../db/server/index.ts'
import { defined } from '../../../../domain/defined.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { PublicPool, type PublicPoolSpec, type PublicPoolStatus } from '../../../../resources/public-pool/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, OPERATOR_TOKEN, type Person, PUBLIC_KEY, type Reply } from '../../cloud.ts'
import { setQuotas } from '../../../accounts.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  await owner.send('POST', '/v1/ssh-keys', { body: { name: 'key', public_key: PUBLIC_KEY } })
  await cloud.grant('olga', [
    { resources: ['publicpools', 'operations'], verbs: ['get', 'list', 'create', 'update', 'delete'] },
  ])
  await cloud.grant('rita', [{ resources: ['publicpools', 'operations'], verbs: ['get', 'list'] }])
})
afterAll(() => cloud.close())
beforeEach(async () => {
  await cloud.db.deleteFrom('public_address').execute()
  await cloud.db.deleteFrom('public_pool').execute()
  for (const { metadata } of (await cloud.admin.list(PublicPool)).items) {
    await cloud.admin.patch(PublicPool, metadata, { metadata: { finalizers: null } })
    await cloud.admin.delete(PublicPool, metadata)
  }
})

const olga = (method: string, path = '', body?: unknown): Promise<Reply> =>
  cloud.operate('olga', method, `/v1/operator/public-pools${path}`, body)
const IPV6 = { family: 'ipv6', cidr: '2001:db8::/40', use: 'server_ipv6_prefix' }
const IPV4 = { family: 'ipv4', cidr: '203.0.113.0/29', use: 'server_ipv4' }
const make = (fields: object) => olga('POST', '', { zone: cloud.zone, ...fields })
const idOf = ({ body }: Reply): string => body['public_pool'].id
const stored = (id: string) =>
  cloud.admin.get(PublicPool, { name: id }) as Promise<KubeObject<PublicPoolSpec, PublicPoolStatus>>

/** As its controller does. */
async function takeOver(id: string): Promise<void> {
  const { spec } = await stored(id)
  await cloud.db.transaction().execute((tx) =>
    mirrorPool(tx, {
      id,
      zone: spec.zone,
      family: spec.family,
      cidr: spec.cidr,
      use: spec.use,
      state: spec.state,
      ...defined({ gateway: spec.gateway }),
    }),
  )
  await end(id, 'succeeded', { state: spec.state })
}
async function end(id: string, status: 'succeeded' | 'failed', more: Partial<PublicPoolStatus> = {}): Promise<void> {
  const { operation } = (await stored(id)).spec
  if (operation === undefined) throw new Error('a pool of the API has an operation')
  await cloud.admin.patch(
    PublicPool,
    { name: id },
    {
      status: {
        ...more,
        operation: {
          id: operation.id,
          kind: operation.kind,
          status,
          step: 'announced',
          stepIndex: 2,
          stepCount: 2,
          error: '',
          actor: operation.actor,
          createdAt: operation.requestedAt,
          deadlineAt: operation.deadlineAt,
        },
      },
    },
    'status',
  )
}
async function working(fields: object): Promise<string> {
  const id = idOf(await make(fields))
  await takeOver(id)
  return id
}
const logOf = (reply: Reply) => cloud.staffAuditOf(reply)

describe('a pool', () => {
  test('is made with its operation, and read and listed', async () => {
    const made = await make(IPV6)
    expect(made.status, made.text).toBe(202)
    const id = idOf(made)
    expect(made.body).toMatchObject({
      public_pool: {
        zone: cloud.zone,
        ...IPV6,
        is_private: false,
        state: 'active',
        total: 2 ** 24,
        allocated: 0,
        active_operation: { kind: 'public_pool.sync', status: 'pending' },
      },
      operation: { kind: 'public_pool.sync', actor: 'operator' },
    })
    expect(await logOf(made)).toMatchObject([
      {
        action: 'public_pool.create',
        resource_type: 'public_pool',
        resource_id: id,
        detail: { cidr: IPV6.cidr },
      },
    ])
    expect(
      (await cloud.operate('olga', 'GET', `/v1/operator/operations/${made.body['operation'].id}`)).body['operation'],
    ).toMatchObject({ kind: 'public_pool.sync' })
    await takeOver(id)
    expect((await olga('GET', `/${id}`)).body).toMatchObject({ public_pool: { id, active_operation: null } })
    const other = await working(IPV4)
    expect((await olga('GET')).body['items'].map((item: { id: string }) => item.id)).toEqual([other, id])
    expect((await olga('GET', '?family=ipv6')).body['items']).toMatchObject([{ id }])
    expect((await olga('GET', '?zone=elsewhere')).body['items']).toEqual([])
    const page = await olga('GET', '?limit=1')
    expect((await olga('GET', `?limit=1&cursor=${page.body['next_cursor']}`)).body).toMatchObject({
      items: [{ id }],
      next_cursor: null,
    })
  })

  test('has its addresses in their canonical form, however they were written', async () => {
    const made = await make({ ...IPV6, cidr: '2001:DB8:70da:0000::/56', gateway: 'FE80::0001' })
    expect(made.body).toMatchObject({ public_pool: { cidr: '2001:db8:70da::/56' } })
    expect((await stored(idOf(made))).spec).toMatchObject({ cidr: '2001:db8:70da::/56', gateway: 'fe80::1' })
  })

  test.each<[string, object, number, string]>([
    ['in a zone that is not there', { zone: 'nowhere' }, 400, 'zone'],
    ['with bits beyond its prefix', { cidr: '2001:db8::1/40' }, 400, 'cidr'],
    ['of another family', { cidr: '203.0.113.0/24' }, 400, 'cidr'],
    ['for a use of the other family', { use: 'server_ipv4' }, 400, 'use'],
    ['that calls private what is public', { is_private: true }, 400, 'is_private'],
    ['with a gateway that could be a server', { gateway: '2001:db8::1' }, 400, 'gateway'],
  ])('%s is refused, and nothing is left', async (_what, fields, status, field) => {
    const reply = await make({ ...IPV6, ...fields })
    expect(reply.body).toMatchObject({ status, errors: [{ field }] })
    expect([await logOf(reply), (await cloud.admin.list(PublicPool)).items]).toEqual([[], []])
  })

  test('that overlaps another is refused and names it, also while that one is being made', async () => {
    const id = idOf(await make(IPV6))
    const overlapping = { ...IPV6, cidr: '2001:db8:1::/48' }
    expect((await make(overlapping)).body).toMatchObject({
      status: 409,
      reason: 'in_use',
      resource: { type: 'public_pool', id },
    })
    await takeOver(id)
    expect((await make(overlapping)).body).toMatchObject({
      status: 409,
      reason: 'in_use',
      resource: { type: 'public_pool', id },
    })
  })

  test("that could not be taken over gives nothing, and is in nobody's way", async () => {
    const id = idOf(await make(IPV6))
    await end(id, 'failed')
    expect((await olga('GET', `/${id}`)).body).toMatchObject({
      public_pool: { id, state: 'retired', active_operation: null },
    })
    expect((await make(IPV6)).status).toBe(202)
  })

  test('drains and gives again, one change at a time', async () => {
    const id = await working(IPV6)
    const draining = await olga('PATCH', `/${id}`, { state: 'draining', note: 'Leaves us.' })
    expect(draining.body).toMatchObject({
      public_pool: { id, state: 'active', active_operation: { kind: 'public_pool.sync' } },
    })
    expect((await stored(id)).spec).toMatchObject({
      state: 'draining',
      note: 'Leaves us.',
      operation: { arguments: { action: 'update' } },
    })
    expect((await olga('PATCH', `/${id}`, { state: 'active' })).body).toMatchObject({
      status: 409,
      reason: 'operation_in_progress',
      active_operation_id: draining.body['operation'].id,
    })
    await takeOver(id)
    expect((await olga('GET', `/${id}`)).body).toMatchObject({ public_pool: { state: 'draining' } })
    expect((await olga('PATCH', `/${id}`, { state: 'active' })).status).toBe(202)
    expect((await olga('PATCH', '/nothing', { state: 'active' })).status).toBe(404)
    expect((await olga('PATCH', `/${id}`, { state: 'retired' })).status).toBe(400)
  })

  test.each<[string, object]>([
    ['nothing', {}],
    ['what it is', { state: 'draining', note: 'Leaves us.' }],
  ])('that is asked for %s stays as it is, without an operation', async (_what, body) => {
    const id = await working(IPV6)
    await olga('PATCH', `/${id}`, { state: 'draining', note: 'Leaves us.' })
    await takeOver(id)
    const before = await stored(id)
    const reply = await olga('PATCH', `/${id}`, body)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body).toEqual((await olga('GET', `/${id}`)).body)
    expect(reply.headers['etag']).toBe((await olga('GET', `/${id}`)).headers['etag'])
    expect(await stored(id)).toEqual(before)
    expect(await logOf(reply)).toMatchObject([{ action: 'public_pool.update', resource_id: id }])
    expect((await olga('PATCH', `/${id}`, { ...body, note: 'Stays.' })).status).toBe(202)
  })

  test('whose change failed is changed again by asking again', async () => {
    const id = await working(IPV6)
    await olga('PATCH', `/${id}`, { state: 'draining' })
    expect((await olga('PATCH', `/${id}`, {})).body).toMatchObject({
      public_pool: { active_operation: { status: 'pending' } },
    })
    await end(id, 'failed')
    expect((await olga('PATCH', `/${id}`, { state: 'draining' })).status).toBe(202)
  })

  test('changes only in the version that If-Match names', async () => {
    const id = await working(IPV6)
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}olga` }
    const drain = (version: string) =>
      cloud.send(
        'PATCH',
        `/v1/operator/public-pools/${id}`,
        { body: { state: 'draining' }, headers: { ...headers, 'if-match': version } },
        '192.0.2.9',
        'operators',
      )
    expect((await drain('"0"')).body).toMatchObject({ status: 409, reason: 'state_not_allowed' })
    expect((await drain(String((await olga('GET', `/${id}`)).headers['etag']))).status).toBe(202)
  })

  test('is deleted only when nobody has an address of it', async () => {
    const id = await working(IPV6)
    await database.db.transaction().execute((tx) =>
      claimServer(
        tx,
        {
          accountId: owner.accountId,
          serverId: newUuid(systemRandom),
          hostname: 'holder',
          zone: cloud.zone,
          cores: 1,
          memoryMebibytes: 1,
          storageGibibytes: 1,
        },
        { now: new Date(), random: systemRandom },
      ),
    )
    expect((await olga('GET', `/${id}`)).body).toMatchObject({ public_pool: { allocated: 1 } })
    expect((await olga('DELETE', `/${id}`)).body).toMatchObject({ status: 409, reason: 'in_use' })
    await cloud.db.deleteFrom('public_address').execute()
    const deleted = await olga('DELETE', `/${id}`)
    expect(deleted.body).toMatchObject({ operation: { kind: 'public_pool.sync' } })
    expect((await stored(id)).spec.operation?.arguments).toEqual({ action: 'delete' })
    expect((await olga('DELETE', '/nothing')).status).toBe(404)
  })

  test('is for those whom the management cluster lets', async () => {
    expect((await cloud.operate('rita', 'GET', '/v1/operator/public-pools')).status).toBe(200)
    expect(
      (await cloud.operate('rita', 'POST', '/v1/operator/public-pools', { zone: cloud.zone, ...IPV6 })).body,
    ).toMatchObject({ status: 403, detail: expect.stringContaining('the verb create on publicpools.svccloud.dev') })
  })
})

describe('a customer', () => {
  let names = 0
  const createServer = (fields: object = {}) =>
    owner.send('POST', '/v1/servers', {
      body: { zone: cloud.zone, hostname: `web-${(names += 1)}`, plan: 'tiny', template: 'tiny-linux', ...fields },
    })
  const held = async (serverId: string) =>
    (await listAddresses(cloud.db, { accountId: owner.accountId, holder: `server/${serverId}` })).map(
      ({ address }) => address,
    )

  test('gets a /64 with every server of a zone that has some, and an IPv4 address on request', async () => {
    await working(IPV6)
    await working(IPV4)
    const plain = (await createServer()).body['server']
    expect(plain).toMatchObject({
      public_ipv4: null,
      public_ipv6: '2001:db8::1',
      public_ipv6_prefix: '2001:db8::/64',
      public_ipv6_is_private: false,
      ssh_command: 'ssh root@2001:db8::1',
      ipv6_renumber_available: false,
    })
    const both = (await createServer({ public_ipv4: true })).body['server']
    expect(both).toMatchObject({
      public_ipv4: '203.0.113.2',
      public_ipv6: '2001:db8:0:1::1',
      ssh_command: 'ssh root@203.0.113.2',
    })
    const read = async () => (await owner.send('GET', `/v1/servers/${both.id}`)).body['server']
    expect(await read()).toMatchObject({
      public_ipv4: '203.0.113.2',
      ssh: { host: '203.0.113.2', port: 22, user: 'root', host_keys: [], proxy: null },
    })
    // A host that forwards a port has a network in which addresses lead nowhere.
    const sshForward = { host: '127.0.0.1', port: 40_022 }
    const key = { namespace: accountNamespace(owner.accountId), name: both.id }
    const status = { state: 'started' as const, sshForward, sshHostKeys: ['ssh-ed25519 AAAA'] }
    await cloud.admin.patch(Server, key, { status }, 'status')
    expect(await read()).toMatchObject({
      ssh_command: 'ssh -p 40022 root@127.0.0.1',
      ssh: { ...sshForward, user: 'root', host_keys: ['ssh-ed25519 AAAA'], proxy: null },
    })
  })

  test('sees a private prefix as one, without a command that could not work', async () => {
    await working({ ...IPV6, cidr: 'fd12:3456::/48', is_private: true })
    expect((await createServer()).body['server']).toMatchObject({
      public_ipv6: 'fd12:3456::1',
      public_ipv6_is_private: true,
      ssh_command: null,
    })
  })

  test('is refused when nothing is free, and holds nothing', async () => {
    expect((await createServer({ public_ipv4: true })).body).toMatchObject({ status: 503, reason: 'no_free_address' })
    expect((await createServer()).body['server']).toMatchObject({
      public_ipv4: null,
      public_ipv6: null,
      public_ipv6_prefix: null,
      ssh_command: null,
    })
    expect(await cloud.db.selectFrom('public_address').select('address').execute()).toEqual([])
  })

  test('exchanges a prefix only when its pool is draining and another has one', async () => {
    const id = await working(IPV6)
    const server = (await createServer()).body['server']
    const path = `/v1/servers/${server.id}/renumber-ipv6`
    const rest = (ipv6RenumberAvailable: boolean) =>
      cloud.admin.patch(
        Server,
        { namespace: accountNamespace(owner.accountId), name: server.id },
        {
          status: {
            state: 'stopped',
            publicIpv6: '2001:db8::1',
            publicIpv6Prefix: '2001:db8::/64',
            ipv6RenumberAvailable,
            operation: {
              id: server.active_operation.id,
              kind: 'server.create',
              status: 'succeeded',
              step: '',
              stepIndex: 4,
              stepCount: 4,
              error: '',
              actor: 'user:1',
              createdAt: server.created_at,
              deadlineAt: server.created_at,
            },
          },
        },
        'status',
      )
    expect((await owner.send('POST', path)).body).toMatchObject({ status: 409, reason: 'operation_in_progress' })
    await rest(false)
    expect((await owner.send('POST', path)).body).toMatchObject({ status: 409, reason: 'state_not_allowed' })
    await olga('PATCH', `/${id}`, { state: 'draining' })
    await takeOver(id)
    await rest(true)
    expect((await owner.send('GET', `/v1/servers/${server.id}`)).body['server']).toMatchObject({
      ipv6_renumber_available: true,
    })
    expect((await owner.send('POST', path)).body).toMatchObject({ status: 503, reason: 'no_free_address' })
    await working({ ...IPV6, cidr: '2001:db9::/40' })
    const accepted = await owner.send('POST', path)
    expect(accepted.body).toMatchObject({
      operation: { kind: 'server.renumber_ipv6', server_id: server.id, status: 'pending' },
    })
    expect(await cloud.auditOf(accepted)).toMatchObject([{ action: 'server.renumber_ipv6', outcome: 'success' }])
    expect(await held(server.id)).toEqual(['2001:db8::1']) // its controller takes the other one
  })

  test('of a hundred concurrent requests, each gets a separate address or the answer that there is none', async () => {
    await working(IPV6)
    await working({ ...IPV4, cidr: '203.0.113.0/27' })
    await setQuotas(cloud.db, 1_000_000, { accountId: owner.accountId })
    const replies = await Promise.all(Array.from({ length: 100 }, () => createServer({ public_ipv4: true })))
    const [made, refused] = [
      replies.filter(({ status }) => status === 202),
      replies.filter(({ status }) => status !== 202),
    ]
    expect([made.length, refused.length]).toEqual([29, 71])
    expect(new Set(refused.map(({ body }) => body['reason']))).toEqual(new Set(['no_free_address']))
    const servers = made.map(({ body }) => body['server'])
    expect(new Set(servers.map(({ public_ipv4 }) => public_ipv4)).size).toBe(29)
    expect(new Set(servers.map(({ public_ipv6_prefix }) => public_ipv6_prefix)).size).toBe(29)
    expect(
      (await cloud.db.selectFrom('public_address').select('address').where('is_current', '=', true).execute()).length,
    ).toBe(58)
  })
})

test.each(['garbage', '203.0.113.77/29', '2001:db8::/200', '203.0.113.0/32'])(
  'a pool whose network is "%s", stored past every check, is listed and blocks nothing',
  async (cidr) => {
    await cloud.admin.create(PublicPool, {
      metadata: { name: 'wrong' },
      spec: { zone: cloud.zone, family: 'ipv4', cidr, use: 'server_ipv4', announce: 'static', state: 'active' },
    })
    await expect
      .poll(async () => (await olga('GET')).body['items'])
      .toMatchObject([{ id: 'wrong', cidr, total: 0, allocated: 0 }])
    expect((await olga('GET', '/wrong')).body['public_pool']).toMatchObject({ id: 'wrong', total: 0 })
    expect((await make({ ...IPV4, cidr: '198.51.100.0/29' })).status).toBe(202)
    expect((await olga('GET')).body['items']).toHaveLength(2)
  },
)
