/** The operators' routes about lost hosts, with tokens of the management cluster and sessions' people. No controllers
 *  run: tests say what they would. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createStaff } from '../../../../db/staff/index.ts'
import { Namespace } from '../../../../kit/kube/object.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../../../resources/node/index.ts'
import { Server, type ServerStatus } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY, type Reply } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  await cloud.grant('olga', [{ resources: ['nodes', 'servers'], verbs: ['get', 'list', 'update'] }])
  await cloud.grant('nora', [{ resources: ['nodes'], verbs: ['get', 'list', 'update'] }])
  for (const [email, role] of [
    ['bob@example.com', 'operations'],
    ['sue@example.com', 'support'],
  ] as const) {
    await createStaff(cloud.db, {
      id: newUuid(systemRandom),
      email,
      name: email,
      role,
      passwordHash: 'x',
      sealedSecret: 'x',
      now: new Date('2026-01-01'),
    })
  }
})
afterAll(() => cloud.close())

let count = 0
let name = ''
beforeEach(() => {
  name = `lost-${(count += 1)}`
})

const BMC = { address: 'https://192.0.2.7', protocol: 'redfish', secretName: 'bmc' } as const
const FENCE: NonNullable<NodeStatus['fence']> = {
  operationId: 'fence-1',
  at: '2026-01-01T00:00:00Z',
  method: 'power_off',
  evidence: 'Its power is off.',
  bootId: 'b',
}

const STORAGE: { readonly storageAccess: NonNullable<NodeSpec['storageAccess']> } = {
  storageAccess: { protocol: 'ceph', addresses: ['192.0.2.7', '2001:db8::7'], secretName: 'ceph' },
}

const addNode = (id: string, status: Partial<NodeStatus>, spec: Partial<NodeSpec> = { bmc: BMC }): Promise<void> =>
  cloud.addNode(id, { status, spec, isSchedulable: status.state === 'ready' })
const olga = (method: string, path: string, body?: unknown): Promise<Reply> =>
  cloud.operate('olga', method, `/v1/operator${path}`, body)
const fenceNode = (body: object, who = 'olga') =>
  cloud.operate(who, 'POST', `/v1/operator/nodes/${name}/fence`, {
    method: 'auto',
    reason: 'Nobody hears it.',
    ...body,
  })

/** A server of the owner that lives on the node. */
async function serverOn(node: string, status: Partial<ServerStatus> = {}): Promise<string> {
  const reply = await owner.send('POST', '/v1/servers', {
    body: {
      hostname: `web-${(count += 1)}`,
      zone: cloud.zone,
      plan: 'tiny',
      template: 'tiny-linux',
      ssh_keys: [PUBLIC_KEY],
    },
  })
  const { id } = reply.body['server'] as { id: string }
  const key = { namespace: accountNamespace(owner.accountId), name: id }
  const stored = await cloud.admin.get(Server, key)
  const operation = stored?.spec.operation
  if (operation === undefined) throw new Error(JSON.stringify(reply.body))
  await cloud.admin.patch(
    Server,
    key,
    {
      status: {
        state: 'started',
        nodeName: node,
        ...status,
        operation: {
          id: operation.id,
          kind: operation.kind,
          status: 'succeeded',
          step: '',
          stepIndex: 1,
          stepCount: 1,
          error: '',
          actor: 'x',
          createdAt: '2026-01-01T00:00:00Z',
          deadlineAt: '2026-01-01T00:00:00Z',
        },
      },
    },
    'status',
  )
  await cloud.db.updateTable('placement').set({ node }).where('server_id', '=', id).execute()
  await expect
    .poll(async () => (await owner.send('GET', `/v1/servers/${id}`)).body['server']?.active_operation)
    .toBeNull()
  return id
}
const stored = (id: string) => cloud.admin.get(Server, { namespace: accountNamespace(owner.accountId), name: id })

describe('fencing a node', () => {
  test('that nobody hears writes its operation, and is in the log with the reason', async () => {
    await addNode(name, { state: 'unreachable' })
    const reply = await fenceNode({})
    expect(reply.status).toBe(202)
    expect(reply.body['operation']).toMatchObject({
      kind: 'node.fence',
      node_id: name,
      status: 'pending',
      step: 'proof',
      step_count: 2,
    })
    expect((await cloud.admin.get(Node, { name }))?.spec.operation).toMatchObject({
      kind: 'node.fence',
      arguments: { method: 'auto', reason: 'Nobody hears it.', approver: 'olga' },
    })
    expect(await cloud.staffAuditOf(reply)).toMatchObject([
      { action: 'node.fence', resource_id: name, detail: { method: 'auto' } },
    ])
  })
  test('that answers needs force', async () => {
    await addNode(name, { state: 'ready' })
    expect((await fenceNode({})).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
      detail: expect.stringContaining('force'),
    })
    const forced = await fenceNode({ force: true })
    expect(forced.status).toBe(202)
    expect((await cloud.admin.get(Node, { name }))?.spec.operation?.arguments).toMatchObject({ force: 'true' })
  })
  test('that is fenced already is refused', async () => {
    await addNode(name, { state: 'fenced', fence: FENCE })
    expect((await fenceNode({ force: true })).body).toMatchObject({
      status: 409,
      detail: 'The node is fenced already.',
    })
  })
  test('that has no controller needs two people', async () => {
    await addNode(name, { state: 'unreachable' }, {})
    expect((await fenceNode({})).body).toMatchObject({ status: 503, reason: 'not_configured' })
    expect((await fenceNode({ method: 'power_off' })).body).toMatchObject({ status: 503 })
    expect((await fenceNode({ method: 'storage_block' })).body).toMatchObject({
      status: 503,
      reason: 'not_configured',
      detail: expect.stringContaining('spec.storageAccess'),
    })
    expect((await fenceNode({ method: 'attest' })).body).toMatchObject({
      status: 400,
      errors: [{ field: 'second_approver' }],
    })
    const reply = await fenceNode({ method: 'attest', second_approver: 'bob@example.com' })
    expect(reply.status).toBe(202)
    expect((await cloud.admin.get(Node, { name }))?.spec.operation?.arguments).toMatchObject({
      method: 'attest',
      approver: 'olga',
      second_approver: 'bob@example.com',
    })
  })
  test('whose shared storage can refuse it needs nothing else', async () => {
    await addNode(name, { state: 'unreachable' }, STORAGE)
    expect((await olga('GET', `/nodes/${name}`)).body['node']).toMatchObject({
      fence_capable: true,
      bmc_configured: false,
    })
    expect((await fenceNode({ method: 'power_off' })).body).toMatchObject({
      status: 503,
      reason: 'not_configured',
      detail: expect.stringContaining('management controller'),
    })
    const reply = await fenceNode({ method: 'storage_block' })
    expect(reply.status).toBe(202)
    expect((await cloud.admin.get(Node, { name }))?.spec.operation).toMatchObject({
      kind: 'node.fence',
      arguments: { method: 'storage_block' },
    })
  })
  test('by auto and by force takes the storage of one that answers', async () => {
    await addNode(name, { state: 'ready' }, STORAGE)
    expect((await fenceNode({})).status).toBe(409)
    expect((await fenceNode({ force: true })).status).toBe(202)
  })
  test.each<readonly [string, Partial<NonNullable<NodeSpec['storageAccess']>>]>([
    ['addresses that are ranges', { addresses: ['192.0.2.0/24'] }],
    ['no address', { addresses: [] }],
    ['another protocol', { protocol: 'nfs' as 'ceph' }],
  ])('by storage is not set up with %s', async (_what, changes) => {
    await expect(
      addNode(name, { state: 'ready' }, { storageAccess: { ...STORAGE.storageAccess, ...changes } }),
    ).rejects.toThrow('storageAccess')
  })
  test('is attested by somebody of the staff who may do so, and nobody else', async () => {
    await addNode(name, { state: 'unreachable' })
    for (const second_approver of ['sue@example.com', 'nobody@example.com'])
      expect((await fenceNode({ method: 'attest', second_approver })).body).toMatchObject({
        status: 400,
        errors: [{ field: 'second_approver' }],
      })
    expect(
      (
        await cloud.operate('bob@example.com', 'POST', `/v1/operator/nodes/${name}/fence`, {
          method: 'attest',
          reason: 'x',
          second_approver: 'bob@example.com',
        })
      ).status,
    ).not.toBe(202)
  })
  test('is not attested for one that answers, with any force', async () => {
    await addNode(name, { state: 'cordoned' }, {})
    for (const method of ['auto', 'attest'])
      expect((await fenceNode({ method, second_approver: 'bob@example.com', force: true })).body).toMatchObject({
        status: 409,
        reason: 'state_not_allowed',
        detail: expect.stringContaining('answers'),
      })
    expect((await cloud.admin.get(Node, { name }))?.spec.operation).toBeUndefined()
  })
  test('attestation by one person alone is no request, for every node', async () => {
    await addNode(name, { state: 'ready' })
    expect((await fenceNode({ method: 'attest' })).body).toMatchObject({
      status: 400,
      errors: [{ field: 'second_approver' }],
    })
    expect((await fenceNode({ method: 'attest', second_approver: 'sue@example.com' })).body).toMatchObject({
      status: 400,
      errors: [{ field: 'second_approver' }],
    })
    expect((await fenceNode({ method: 'attest', second_approver: 'bob@example.com' })).status).toBe(409)
  })
  test('that was never heard has nothing to fence', async () => {
    await addNode(name, { state: 'provisioning' })
    expect((await fenceNode({ force: true })).body).toMatchObject({
      status: 409,
      detail: 'The node is provisioning: nothing has run on it yet.',
    })
  })
  test('that is unknown is 404', async () => expect((await fenceNode({})).status).toBe(404))
})

describe('a server of a lost node', () => {
  test('recovers only from a node that is fenced', async () => {
    await addNode(name, { state: 'unreachable' })
    const id = await serverOn(name, { state: 'error' })
    expect((await olga('POST', `/servers/${id}/recover`, {})).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
    await cloud.admin.patch(Node, { name }, { status: { state: 'fenced', fence: FENCE } }, 'status')
    const reply = await olga('POST', `/servers/${id}/recover`, { start: false })
    expect(reply.body['operation']).toMatchObject({ kind: 'server.recover', server_id: id, status: 'pending' })
    expect((await stored(id))?.spec.operation).toMatchObject({
      actor: 'operator',
      arguments: { lost_node_id: name, fence_operation_id: 'fence-1', start: 'false' },
    })
    expect((await olga('POST', `/servers/${id}/recover`, {})).body).toMatchObject({
      status: 409,
      reason: 'operation_in_progress',
    })
    const entries = await cloud.db
      .selectFrom('audit_entry')
      .select('body')
      .where('account_id', '=', owner.accountId)
      .execute()
    expect(
      entries.map(({ body }) => JSON.parse(body)).filter(({ action }) => action === 'server.recover'),
    ).toMatchObject([{ actor_kind: 'operator', resource_id: id, outcome: 'success' }])
  })
  test('goes to another node of its zone, if any is named', async () => {
    await addNode(name, { state: 'fenced', fence: FENCE })
    const id = await serverOn(name, { state: 'error' })
    for (const target_node_id of [name, 'nowhere'])
      expect((await olga('POST', `/servers/${id}/recover`, { target_node_id })).body).toMatchObject({
        status: 400,
        errors: [{ field: 'target_node_id' }],
      })
  })
  test('is no business of who may not touch the servers of the account', async () => {
    await addNode(name, { state: 'fenced', fence: FENCE })
    const id = await serverOn(name, { state: 'error' })
    for (const path of ['recover', 'migrate', 'settle-migration', 'force-release']) {
      const body = path === 'force-release' ? { reason: 'x', fence_operation_id: 'fence-1' } : {}
      expect((await cloud.operate('nora', 'POST', `/v1/operator/servers/${id}/${path}`, body)).body).toMatchObject({
        status: 403,
        detail: expect.stringContaining('servers.svccloud.dev'),
      })
      const unknown = newUuid(systemRandom)
      // nor told whether there is one
      expect((await cloud.operate('nora', 'POST', `/v1/operator/servers/${unknown}/${path}`, body)).status).toBe(403)
      expect((await olga('POST', `/servers/${unknown}/${path}`, body)).status).toBe(404)
    }
  })
  test('a name that is not unique is not revealed to callers without access to all of them', async () => {
    const [spec, name] = [(await stored(await serverOn(cloud.node)))?.spec, 'twin']
    if (spec === undefined) throw new Error('there is no server to copy')
    for (const namespace of ['twin-1', 'twin-2'].map(accountNamespace)) {
      await cloud.admin.create(Namespace, { metadata: { name: namespace }, spec: {} })
      await cloud.admin.create(Server, { metadata: { namespace, name }, spec: { ...spec, hostname: name } })
    }
    const recover = async (user: string) =>
      (await cloud.operate(user, 'POST', `/v1/operator/servers/${name}/recover`, {})).status
    await expect.poll(() => recover('olga')).toBe(409)
    expect(await recover('nora')).toBe(403)
  })
  test('is released by the fencing of its own node, or by two people while the node is silent', async () => {
    await addNode(name, { state: 'unreachable' })
    const id = await serverOn(name, { state: 'error' })
    const release = (body: object) =>
      olga('POST', `/servers/${id}/force-release`, { reason: 'The host burned.', ...body })
    expect((await release({})).body).toMatchObject({
      status: 400,
      detail: 'The request must give either fence_operation_id or attest.',
    })
    expect((await release({ fence_operation_id: 'fence-1', attest: 'bob@example.com' })).status).toBe(400)
    expect((await release({ fence_operation_id: 'fence-1' })).body).toMatchObject({ status: 409 })
    expect((await release({ attest: 'sue@example.com' })).body).toMatchObject({
      status: 400,
      errors: [{ field: 'attest' }],
    })
    const reply = await release({ attest: 'bob@example.com' })
    expect(reply.body['operation']).toMatchObject({ kind: 'server.force_release', server_id: id })
    expect((await stored(id))?.spec.operation?.arguments).toMatchObject({
      lost_node_id: name,
      attest: 'bob@example.com',
      approver: 'olga',
    })
  })
  test(
    'is given up by two people, not by a fencing that only its storage proves: its guest may answer at its ' +
      'addresses',
    async () => {
      await addNode(name, { state: 'fenced', fence: { ...FENCE, method: 'storage_block' } }, STORAGE)
      const id = await serverOn(name, { state: 'error' })
      expect(
        (await olga('POST', `/servers/${id}/force-release`, { reason: 'x', fence_operation_id: 'fence-1' })).body,
      ).toMatchObject({ status: 409, detail: expect.stringContaining('attest') })
      expect(
        (await olga('POST', `/servers/${id}/force-release`, { reason: 'x', attest: 'bob@example.com' })).status,
      ).toBe(202)
    },
  )
  test('is not given up on the word of two while its node answers', async () => {
    await addNode(name, { state: 'ready' })
    const id = await serverOn(name)
    expect(
      (await olga('POST', `/servers/${id}/force-release`, { reason: 'x', attest: 'bob@example.com' })).body,
    ).toMatchObject({ status: 409, detail: expect.stringContaining('answers') })
  })
  test('is not given up while it is protected', async () => {
    await addNode(name, { state: 'fenced', fence: FENCE })
    const id = await serverOn(name, { state: 'error' })
    await owner.send('PATCH', `/v1/servers/${id}`, { body: { is_protected: true } })
    expect(
      (await olga('POST', `/servers/${id}/force-release`, { reason: 'x', fence_operation_id: 'fence-1' })).body,
    ).toMatchObject({ status: 409, reason: 'protected' })
  })
})

describe('a server', () => {
  test('is moved to a node, live or as it is', async () => {
    await addNode(name, { state: 'ready' })
    await addNode(`${name}-b`, { state: 'ready' })
    const id = await serverOn(name)
    const reply = await olga('POST', `/servers/${id}/migrate`, { target_node_id: `${name}-b`, mode: 'live' })
    expect(reply.body['operation']).toMatchObject({ kind: 'server.migrate', server_id: id })
    expect((await stored(id))?.spec.operation?.arguments).toMatchObject({ target_node_id: `${name}-b`, mode: 'live' })
    const stopped = await serverOn(name, { state: 'stopped' })
    expect(
      (await olga('POST', `/servers/${stopped}/migrate`, { target_node_id: `${name}-b` })).body['operation'],
    ).toMatchObject({ kind: 'server.move' })
  })
  test('is not moved where there is no room', async () => {
    await addNode(name, { state: 'ready' })
    await addNode(`${name}-b`, { state: 'unreachable' })
    const id = await serverOn(name)
    expect((await olga('POST', `/servers/${id}/migrate`, { target_node_id: `${name}-b` })).body).toMatchObject({
      status: 503,
      reason: 'no_capacity',
    })
  })
  test('is settled only while room is held for it elsewhere', async () => {
    await addNode(name, { state: 'ready' })
    const id = await serverOn(name)
    expect((await olga('POST', `/servers/${id}/settle-migration`, {})).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
    await cloud.db
      .insertInto('placement_target')
      .values({
        account_id: owner.accountId,
        server_id: id,
        operation_id: 'op',
        zone: cloud.zone,
        node: name,
        cores: 1,
        memory_mebibytes: 192,
        storage_gibibytes: 1,
        reserved_at: new Date(),
      })
      .execute()
    expect(
      (await olga('POST', `/servers/${id}/settle-migration`, { winner: 'target' })).body['operation'],
    ).toMatchObject({ kind: 'server.settle_migration' })
  })
})
