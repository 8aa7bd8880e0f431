/** The operators' routes of nodes, operations and capacity, with tokens of the management cluster. No controllers run:
 *  tests say what they would. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { mirrorNode } from '../../../../db/placement/index.ts'
import type { FinishedOperation } from '../../../../domain/operations.ts'
import { recordOperation } from '../../../../db/operation/index.ts'
import { Namespace } from '../../../../kit/kube/object.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { NODE_REPORT_NAME, nodeNamespace, NodeReport } from '../../../../resources/instance/index.ts'
import { Node, type NodeStatus } from '../../../../resources/node/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, OPERATOR_TOKEN, type Person, PUBLIC_KEY, type Reply } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  await cloud.grant('olga', [
    { resources: ['nodes', 'operations', 'zones'], verbs: ['get', 'list', 'create', 'update', 'delete'] },
  ])
  await cloud.grant('oscar', [{ resources: ['operations'], verbs: ['get', 'list', 'update'] }])
  await cloud.grant('rita', [{ resources: ['nodes'], verbs: ['get', 'list'] }])
})
afterAll(() => cloud.close())

let names = 0
let name = ''
beforeEach(() => {
  name = `host-${(names += 1)}`
})

const setStatus = (id: string, status: Partial<NodeStatus>) =>
  cloud.admin.patch(Node, { name: id }, { status }, 'status')
const keepStorage = (node: string, storageId: string) =>
  cloud.db
    .insertInto('storage_claim')
    .values({
      account_id: owner.accountId,
      storage_id: storageId,
      zone: cloud.zone,
      size_gibibytes: 1,
      phase: 'detached',
      node,
      claimed_at: new Date(),
    })
    .execute()

/** A server has its place on the node. */
const place = (node: string, serverId: string, memoryMebibytes = 512, groupId?: string) =>
  cloud.db.transaction().execute(async (tx) => {
    await tx
      .insertInto('placement')
      .values({
        account_id: owner.accountId,
        server_id: serverId,
        zone: cloud.zone,
        node,
        cores: 1,
        memory_mebibytes: memoryMebibytes,
        storage_gibibytes: 1,
        group_id: groupId ?? null,
        claimed_at: new Date(),
      })
      .execute()
    await tx
      .updateTable('node_capacity')
      .set((row) => ({
        cores_used: row('cores_used', '+', 1),
        memory_mebibytes_used: row('memory_mebibytes_used', '+', memoryMebibytes),
        storage_gibibytes_used: row('storage_gibibytes_used', '+', 1),
      }))
      .where('node', '=', node)
      .execute()
  })
const olga = (method: string, path: string, body?: unknown): Promise<Reply> =>
  cloud.operate('olga', method, `/v1/operator${path}`, body)
const storedNode = (id: string) => cloud.admin.get(Node, { name: id })
const logOf = (reply: Reply) => cloud.staffAuditOf(reply)
const recordFailure = async (node: string, id: string, kind: FinishedOperation['kind']) => {
  const at = '2026-01-01T00:00:00.000Z'
  await recordOperation(cloud.db, null, {
    id,
    kind,
    target: { type: 'node', id: node },
    actor: 'operator',
    requestId: 'r',
    status: 'failed',
    step: '',
    stepIndex: 1,
    stepCount: 2,
    error: 'No.',
    createdAt: at,
    deadlineAt: at,
    startedAt: at,
    finishedAt: at,
    events: [],
  })
}
/** Ends the operation that was begun as failed, and answers its id. */
async function asFailed(node: string, begun: Reply, kind: FinishedOperation['kind']): Promise<string> {
  expect(begun.status).toBe(202)
  const { id } = begun.body['operation']
  await finish(node, begun.body['operation'], 'failed')
  await recordFailure(node, id, kind)
  return id
}
const finish = (
  id: string,
  operation: { readonly id: string; readonly kind: string },
  status: 'succeeded' | 'failed',
) =>
  setStatus(id, {
    operation: {
      id: operation.id,
      kind: operation.kind as 'node.drain',
      status,
      step: '',
      stepIndex: 0,
      stepCount: 1,
      error: '',
      actor: 'operator',
      createdAt: '2026-01-01T00:00:00Z',
      deadlineAt: '2026-01-01T00:00:00Z',
    },
  })

describe('who may', () => {
  test('nobody without a credential, and no customer with theirs', async () => {
    const token = await owner.token('read_write')
    expect((await cloud.send('GET', '/v1/operator/nodes', {}, undefined, 'operators')).status).toBe(401)
    expect(
      (
        await cloud.send(
          'GET',
          '/v1/operator/nodes',
          { headers: { authorization: `Bearer ${token}` } },
          undefined,
          'operators',
        )
      ).status,
    ).toBe(401)
  })
  test('on the listener of customers there is no such route, and an operator is nobody', async () => {
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}olga` }
    expect((await cloud.send('GET', '/v1/operator/nodes', { headers })).status).toBe(404)
    expect((await cloud.send('GET', '/v1/servers', { headers })).status).toBe(401)
  })
  test('a 403 for readers names the missing verb', async () => {
    await cloud.addNode(name)
    expect((await cloud.operate('rita', 'GET', `/v1/operator/nodes/${name}`)).status).toBe(200)
    const refused = await cloud.operate('rita', 'POST', `/v1/operator/nodes/${name}/cordon`, { reason: 'x' })
    expect(refused.body).toMatchObject({
      status: 403,
      detail: 'This needs the verb update on nodes.svccloud.dev, in the management cluster.',
    })
    expect(await logOf(refused)).toMatchObject([
      {
        action: 'node.cordon',
        actor_email: 'rita',
        resource_id: name,
        detail: { outcome: 'denied', status: '403' },
      },
    ])
    expect((await cloud.operate('nobody', 'GET', '/v1/operator/nodes')).status).toBe(403)
    expect((await cloud.operate('rita', 'GET', '/v1/operator/operations')).status).toBe(403)
  })
})

describe('a node that joins', () => {
  const asked = () => ({
    hostname: name,
    zone: cloud.zone,
    rack: 'rack-7',
    management_address: '192.0.2.7',
    bmc: { address: 'https://bmc', protocol: 'redfish', secret_ref: 'bmc' },
    cpu_pool: 'fast',
    roles: ['compute'],
  })
  test('has its record and its operation in one answer, and is in the log of the operators once', async () => {
    const reply = await olga('POST', '/nodes', asked())
    expect(reply.status).toBe(202)
    expect(reply.body['node']).toMatchObject({
      id: name,
      hostname: name,
      rack: 'rack-7',
      state: 'provisioning',
      cpu_pool: 'fast',
      bmc_configured: true,
      fence_capable: true,
      server_count: 0,
      last_seen_at: null,
      active_operation: { kind: 'node.provision' },
    })
    expect(reply.body['operation']).toMatchObject({
      kind: 'node.provision',
      node_id: name,
      status: 'pending',
      step: 'access',
      actor: 'operator',
    })
    expect((await storedNode(name))?.spec).toMatchObject({
      managementAddress: '192.0.2.7',
      bmc: { secretName: 'bmc' },
      isCordoned: false,
      operation: { id: reply.body['operation'].id },
    })
    expect(await logOf(reply)).toMatchObject([
      {
        action: 'node.provision',
        actor_email: 'olga',
        actor_kind: 'operator',
        resource_type: 'node',
        resource_id: name,
        source_ip: '192.0.2.9',
      },
    ])
    expect((await olga('GET', `/operations/${reply.body['operation'].id}`)).body['operation']).toMatchObject({
      node_id: name,
      status: 'pending',
      events: [],
    })
  })
  test('needs a name that is free, and a zone and an account that are there', async () => {
    await olga('POST', '/nodes', asked())
    const again = await olga('POST', '/nodes', asked())
    expect(again.body).toMatchObject({ status: 409, reason: 'name_taken' })
    expect(await logOf(again)).toMatchObject([
      { action: 'node.provision', detail: { outcome: 'failed', status: '409', reason: 'name_taken' } },
    ])
    expect((await olga('POST', '/nodes', { ...asked(), hostname: `${name}-b`, zone: 'nowhere' })).body).toMatchObject({
      status: 400,
      errors: [{ field: 'zone' }],
    })
    expect(
      (
        await olga('POST', '/nodes', {
          ...asked(),
          hostname: `${name}-b`,
          dedicated_account_id: '00000000-0000-4000-8000-000000000000',
        })
      ).body,
    ).toMatchObject({ status: 400, errors: [{ field: 'dedicated_account_id' }] })
    expect((await olga('POST', '/nodes', { ...asked(), hostname: 'Bad_Name' })).status).toBe(400)
    expect(
      (await olga('POST', '/nodes', { ...asked(), hostname: `${name}-b`, roles: ['compute', 'compute'] })).status,
    ).toBe(400)
    expect(await storedNode(`${name}-b`)).toBeUndefined()
  })
})

describe('nodes', () => {
  test('are listed newest first, by zone, rack, state and pool, page by page', async () => {
    for (const id of [`${name}-a`, `${name}-b`, `${name}-c`])
      await cloud.addNode(id, {
        spec: { rack: name, cpuPool: 'odd' },
        status: id.endsWith('c') ? { state: 'cordoned' } : {},
      })
    const idsOf = (reply: Reply) => (reply.body['items'] as { id: string }[]).map(({ id }) => id).sort()
    expect(idsOf(await olga('GET', `/nodes?rack=${name}&cpu_pool=odd&zone=${cloud.zone}`))).toEqual([
      `${name}-a`,
      `${name}-b`,
      `${name}-c`,
    ])
    expect(idsOf(await olga('GET', `/nodes?rack=${name}&state=cordoned`))).toEqual([`${name}-c`])
    expect(idsOf(await olga('GET', `/nodes?rack=${name}&zone=elsewhere`))).toEqual([])
    const first = await olga('GET', `/nodes?rack=${name}&limit=2`)
    const second = await olga('GET', `/nodes?rack=${name}&limit=2&cursor=${String(first.body['next_cursor'])}`)
    expect([...idsOf(first), ...idsOf(second)].sort()).toEqual([`${name}-a`, `${name}-b`, `${name}-c`])
    expect(second.body['next_cursor']).toBeNull()
    expect((await olga('GET', '/nodes?limit=2&cursor=nonsense')).status).toBe(400)
  })
  test('show what is used of them', async () => {
    await cloud.addNode(name)
    await place(name, `${name}-s`)
    expect((await olga('GET', `/nodes/${name}`)).body['node']).toMatchObject({
      state: 'ready',
      vcpus_used: 1,
      memory_used_mebibytes: 512,
      server_count: 1,
      agent_version: '1',
      desired_agent_version: '1',
      logical_cpus: 4,
    })
    // Its host has more than PostgreSQL knows.
    const key = { namespace: nodeNamespace(name), name: NODE_REPORT_NAME }
    const held = { guests: 3, volumes: 3, images: 0, unclaimed: 2 }
    const size = { logicalCpus: 4, memoryMebibytes: 4096, storageGibibytes: 10 }
    await cloud.store.create(Namespace, { metadata: { name: key.namespace }, spec: undefined })
    await cloud.store.create(NodeReport, {
      metadata: key,
      spec: { agentVersion: '1', bootId: 'b', hypervisor: 'simulated', features: [], ...size },
    })
    await cloud.store.patch(NodeReport, key, { status: { held } }, 'status')
    expect((await olga('GET', `/nodes/${name}`)).body['node']).toMatchObject({ server_count: 3 })
    expect((await olga('GET', '/nodes/nowhere')).status).toBe(404)
  })
  test('change their rack, pool, labels and overcommit, and their account only while they are empty', async () => {
    await cloud.addNode(name, { spec: { labels: { a: '1', b: '2' } } })
    const reply = await olga('PATCH', `/nodes/${name}`, {
      rack: 'r9',
      cpu_pool: 'fast',
      overcommit: 2,
      labels: { b: '3' },
      dedicated_account_id: owner.accountId,
    })
    expect(reply.body['node']).toMatchObject({ rack: 'r9', cpu_pool: 'fast', dedicated_account_id: owner.accountId })
    expect((await storedNode(name))?.spec).toMatchObject({ cpuOvercommit: 2, labels: { b: '3' } })
    expect((await storedNode(name))?.spec.labels).toEqual({ b: '3' })
    expect(await logOf(reply)).toHaveLength(1)
    await place(name, `${name}-s`)
    const refused = await olga('PATCH', `/nodes/${name}`, { dedicated_account_id: null })
    expect(refused.body).toMatchObject({ status: 409, reason: 'in_use', resource: { type: 'node', id: name } })
    expect(await logOf(refused)).toMatchObject([{ resource_id: name, detail: { outcome: 'failed' } }])
    expect(
      (await olga('PATCH', `/nodes/${name}`, { dedicated_account_id: owner.accountId, cpu_pool: null })).status,
    ).toBe(200)
    expect((await olga('PATCH', `/nodes/${name}`, { zone: 'other' })).status).toBe(400)
  })
})

describe('cordoning', () => {
  test('writes the wish and its operation together, once', async () => {
    await cloud.addNode(name)
    const reply = await olga('POST', `/nodes/${name}/cordon`, { reason: 'A fan is loud.' })
    expect(reply.status).toBe(202)
    expect((await storedNode(name))?.spec).toMatchObject({
      isCordoned: true,
      operation: { id: reply.body['operation'].id, kind: 'node.cordon', arguments: { reason: 'A fan is loud.' } },
    })
    expect(await logOf(reply)).toMatchObject([{ action: 'node.cordon', detail: { reason: 'A fan is loud.' } }])
    expect((await olga('POST', `/nodes/${name}/uncordon`)).body).toMatchObject({
      status: 409,
      reason: 'operation_in_progress',
      active_operation_id: reply.body['operation'].id,
    })
    await finish(name, reply.body['operation'], 'succeeded')
    expect((await olga('POST', `/nodes/${name}/cordon`, { reason: 'x' })).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
    const undone = await olga('POST', `/nodes/${name}/uncordon`)
    expect(undone.body['operation']).toMatchObject({ kind: 'node.uncordon' })
    expect((await storedNode(name))?.spec.operation).not.toHaveProperty('arguments')
  })
  test('needs a reason and a node', async () => {
    expect((await olga('POST', '/nodes/nowhere/cordon', { reason: 'x' })).status).toBe(404)
    expect((await olga('POST', '/nodes/nowhere/cordon', {})).status).toBe(400)
  })
})

describe('draining', () => {
  test('keeps what was asked for, and its deadline counts from the announced hour', async () => {
    await cloud.addNode(name)
    await place(name, `${name}-s`)
    const reply = await olga('POST', `/nodes/${name}/drain`, {
      mode: 'live_then_cold',
      max_parallel: 4,
      deadline_minutes: 30,
      notify_hours: 2,
    })
    const { operation } = (await storedNode(name))?.spec ?? {}
    expect(operation).toMatchObject({
      id: reply.body['operation'].id,
      kind: 'node.drain',
      arguments: { mode: 'live_then_cold', max_parallel: '4', notify_hours: '2' },
    })
    expect(Date.parse(operation?.deadlineAt ?? '') - Date.parse(operation?.requestedAt ?? '')).toBe(150 * 60_000)
    expect((await storedNode(name))?.spec).toMatchObject({ isCordoned: true, isInMaintenance: true })
  })
  test('is refused when the zone has no room for everybody, and names who is in the way', async () => {
    await cloud.addNode(name, { room: { memoryMebibytes: 4_194_304 } })
    await Promise.all([place(name, `${name}-huge`, 2_097_152), place(name, `${name}-small`)])
    const reply = await olga('POST', `/nodes/${name}/drain`, {})
    expect(reply.body).toMatchObject({ status: 503, reason: 'no_capacity', blocking_servers: [`${name}-huge`] })
    expect((await storedNode(name))?.spec.isCordoned).toBe(false)
    expect(await logOf(reply)).toMatchObject([
      { action: 'node.drain', detail: { outcome: 'failed', status: '503', reason: 'no_capacity' } },
    ])
  })
  test('is refused when a strict group has a server on every other node', async () => {
    const [spec, groupId] = [{ zone: `${name}-z` }, randomUUID()]
    await Promise.all([cloud.addNode(name, { spec }), cloud.addNode(`${name}-2`, { spec })])
    await cloud.db
      .insertInto('server_group')
      .values({
        account_id: owner.accountId,
        id: groupId,
        name,
        zone: spec.zone,
        region: 'eu-1',
        spread: 'host',
        is_strict: true,
        generation: 1,
        created_at: new Date(),
      })
      .execute()
    await Promise.all([
      place(name, `${name}-a`, 512, groupId),
      place(`${name}-2`, `${name}-b`, 512, groupId),
      place(name, `${name}-alone`),
    ])
    expect((await olga('POST', `/nodes/${name}/drain`, {})).body).toMatchObject({
      status: 503,
      reason: 'no_capacity',
      blocking_servers: [`${name}-a`],
    })
    await cloud.addNode(`${name}-3`, { spec })
    expect((await olga('POST', `/nodes/${name}/drain`, {})).status).toBe(202)
  })
  test.each(['provisioning', 'unreachable', 'maintenance', 'fenced'] as const)(
    'is nothing for a node that is %s',
    async (state) => {
      await cloud.addNode(name, { status: { state } })
      expect((await olga('POST', `/nodes/${name}/drain`, {})).body).toMatchObject({
        status: 409,
        reason: 'state_not_allowed',
      })
    },
  )
  test('for maintenance has a reason, and holds storage only where it is replicated', async () => {
    await cloud.addNode(name)
    expect(
      (await olga('POST', `/nodes/${name}/maintenance`, { reason: 'New memory.', storage_flags: true })).body,
    ).toMatchObject({ status: 409, reason: 'zone_capability_missing' })
    expect((await olga('POST', `/nodes/${name}/maintenance`, {})).status).toBe(400)
    expect(
      (await olga('POST', `/nodes/${name}/maintenance`, { reason: 'New memory.' })).body['operation'],
    ).toMatchObject({ kind: 'node.maintenance', node_id: name })
  })
})

test(
  'work on its node is announced to the owner of a server, with its ' + 'hour, its reason and how the server leaves',
  async () => {
    await cloud.addNode(name)
    const made = await owner.send('POST', '/v1/servers', {
      body: { zone: cloud.zone, hostname: name, plan: 'tiny', template: 'tiny-linux', ssh_keys: [PUBLIC_KEY] },
    })
    const { id } = made.body['server']
    await cloud.admin.patch(
      Server,
      { namespace: accountNamespace(owner.accountId), name: id },
      { status: { state: 'started', nodeName: name } },
      'status',
    )
    const shown = async () => (await owner.send('GET', `/v1/servers/${id}`)).body['server'].maintenance
    expect(await shown()).toBeNull()
    await setStatus(name, {
      plannedWork: { operationId: 'op', plannedAt: '2026-01-01T13:00:00.000Z', reason: 'New memory.', action: 'live' },
    })
    await expect.poll(shown).toEqual({ planned_at: '2026-01-01T13:00:00.000Z', reason: 'New memory.', action: 'live' })
  },
)

describe('another agent', () => {
  test('is tried by one node of the zone first', async () => {
    const version = `2.0.${names}`
    await cloud.addNode(name)
    await cloud.addNode(`${name}-b`)
    const canary = await olga('POST', `/nodes/${name}/agent-upgrade`, { version })
    expect(canary.body['operation']).toMatchObject({ kind: 'node.agent_upgrade' })
    expect((await olga('POST', `/nodes/${name}-b/agent-upgrade`, { version })).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
    await finish(name, canary.body['operation'], 'succeeded')
    await setStatus(name, { agentVersion: version })
    expect((await olga('POST', `/nodes/${name}-b/agent-upgrade`, { version })).status).toBe(202)
    expect((await olga('GET', `/nodes/${name}-b`)).body['node']).toMatchObject({
      agent_version: '1',
      desired_agent_version: version,
    })
    expect((await olga('POST', `/nodes/${name}/agent-upgrade`, { version: 'no version' })).status).toBe(400)
  })
})

describe('removing', () => {
  test('takes only a cordoned node without servers and storages', async () => {
    await cloud.addNode(name)
    await place(name, `${name}-s`)
    expect((await olga('DELETE', `/nodes/${name}`)).body).toMatchObject({
      status: 409,
      reason: 'in_use',
      detail: 'A server has its place on the node. Drain it first.',
    })
    await setStatus(name, { state: 'fenced' })
    expect((await olga('DELETE', `/nodes/${name}`)).body).toMatchObject({
      status: 409,
      reason: 'in_use',
      detail: 'A server has its place on the node. Bring it elsewhere or give it up first.',
    })
    await cloud.db.deleteFrom('placement').where('server_id', '=', `${name}-s`).execute()
    expect((await olga('DELETE', `/nodes/${name}`)).body).toMatchObject({ status: 409, reason: 'state_not_allowed' })
    await cloud.admin.patch(Node, { name }, { spec: { isCordoned: true } })
    await keepStorage(name, `${name}-data`)
    expect((await olga('DELETE', `/nodes/${name}`)).body).toMatchObject({
      status: 409,
      reason: 'in_use',
      detail: `Storages have their place on the node: ${name}-data. Move or delete them first.`,
    })
    await cloud.db.deleteFrom('storage_claim').where('storage_id', '=', `${name}-data`).execute()
    const removed = await olga('DELETE', `/nodes/${name}`)
    expect(removed.status).toBe(204)
    expect(await storedNode(name)).toBeUndefined()
    expect(await logOf(removed)).toMatchObject([{ action: 'node.remove' }])
    expect((await olga('DELETE', `/nodes/${name}`)).status).toBe(404)
  })
})

describe('operations of operators', () => {
  test('are cancelled once, where that can be', async () => {
    await cloud.addNode(name)
    const drain = await olga('POST', `/nodes/${name}/drain`, {})
    const { id } = drain.body['operation']
    const cancelled = await olga('POST', `/operations/${id}/cancel`)
    expect(cancelled.status).toBe(202)
    expect((await storedNode(name))?.spec.operation?.arguments).toMatchObject({ cancel: 'true', mode: 'live_only' })
    expect(await logOf(cancelled)).toMatchObject([{ action: 'operation.cancel', detail: { node_id: name } }])
    await finish(name, drain.body['operation'], 'failed')
    expect((await olga('POST', `/operations/${id}/cancel`)).status).toBe(404) // its record is the controllers' to make
    await cloud.addNode(`${name}-b`)
    const cordon = await olga('POST', `/nodes/${name}-b/cordon`, { reason: 'x' })
    expect((await olga('POST', `/operations/${cordon.body['operation'].id}/cancel`)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
  })
  test('that have failed are tried again with what was asked for, as long as nothing came after', async () => {
    await cloud.addNode(name)
    const drain = await olga('POST', `/nodes/${name}/drain`, { mode: 'live_then_cold', deadline_minutes: 30 })
    const { id } = drain.body['operation']
    expect((await olga('POST', `/operations/${id}/retry`)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
    await finish(name, drain.body['operation'], 'failed')
    await cloud.admin.patch(Node, { name }, { spec: { isInMaintenance: false } })
    await recordFailure(name, id, 'node.drain')
    expect((await olga('GET', `/operations/${id}`)).body['operation']).toMatchObject({
      status: 'failed',
      error: 'No.',
      node_id: name,
    })
    expect((await olga('GET', `/operations?node_id=${name}&status=failed`)).body['items']).toMatchObject([{ id }])
    expect((await olga('GET', `/operations?resource=node:${name}`)).body['items']).toMatchObject([{ id }])
    expect((await olga('GET', `/operations?resource=server:${name}`)).body['items']).toEqual([])
    const again = await olga('POST', `/operations/${id}/retry`)
    expect(again.body['operation']).toMatchObject({ kind: 'node.drain', status: 'pending' })
    const { spec } = (await storedNode(name))!
    expect(spec).toMatchObject({ isInMaintenance: true, operation: { arguments: { mode: 'live_then_cold' } } })
    expect(Date.parse(spec.operation?.deadlineAt ?? '') - Date.parse(spec.operation?.requestedAt ?? '')).toBe(
      30 * 60_000,
    )
    expect(await logOf(again)).toMatchObject([{ action: 'operation.retry', detail: { operation_id: id } }])
    expect((await olga('POST', `/operations/${id}/retry`)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
  })
  test('that have failed are judged again as what they ask for', async () => {
    const version = `3.0.${names}`
    await cloud.addNode(name)
    await cloud.addNode(`${name}-b`)
    const upgrade = await asFailed(
      name,
      await olga('POST', `/nodes/${name}/agent-upgrade`, { version }),
      'node.agent_upgrade',
    )
    await olga('POST', `/nodes/${name}-b/agent-upgrade`, { version })
    expect((await olga('POST', `/operations/${upgrade}/retry`)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
      detail: expect.stringContaining(`${name}-b tries version`),
    })
    const drained = `${name}-c`
    await cloud.addNode(drained)
    const drain = await asFailed(drained, await olga('POST', `/nodes/${drained}/drain`, {}), 'node.drain')
    await setStatus(drained, { state: 'unreachable' })
    expect((await olga('POST', `/operations/${drain}/retry`)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
      detail: expect.stringContaining('unreachable'),
    })
  })
  test('that have failed to prove something are not tried again', async () => {
    await cloud.addNode(name, {
      status: { state: 'unreachable' },
      spec: { bmc: { address: 'https://bmc', protocol: 'redfish', secretName: 'bmc' } },
    })
    const fence = await asFailed(
      name,
      await olga('POST', `/nodes/${name}/fence`, { method: 'auto', reason: 'x' }),
      'node.fence',
    )
    expect((await olga('POST', `/operations/${fence}/retry`)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
      detail: 'An operation node.fence is not tried again: ask for what is wanted now.',
    })
  })
  test('of nodes are no business of who may not touch nodes', async () => {
    await cloud.addNode(name)
    const drain = await olga('POST', `/nodes/${name}/drain`, {})
    const refusal = { status: 403, detail: expect.stringContaining('update on nodes.svccloud.dev') }
    expect(
      (await cloud.operate('oscar', 'POST', `/v1/operator/operations/${drain.body['operation'].id}/cancel`)).body,
    ).toMatchObject(refusal)
    const failed = await asFailed(name, drain, 'node.drain')
    expect((await cloud.operate('oscar', 'POST', `/v1/operator/operations/${failed}/retry`)).body).toMatchObject(
      refusal,
    )
  })
  test('are those of all accounts too', async () => {
    const server = await owner.send('POST', '/v1/servers', {
      body: { zone: cloud.zone, hostname: name, plan: 'tiny', template: 'tiny-linux', ssh_keys: [PUBLIC_KEY] },
    })
    const { id } = server.body['operation']
    expect((await olga('GET', `/operations/${id}`)).body['operation']).toMatchObject({
      kind: 'server.create',
      server_id: server.body['server'].id,
    })
    const listed = async (query: string) =>
      ((await olga('GET', `/operations?${query}`)).body['items'] as { id: string }[]).some(
        (operation) => operation.id === id,
      )
    expect(await listed('kind=server.create')).toBe(true)
    expect(await listed('kind=server.stop')).toBe(false)
    expect(await listed('status=pending')).toBe(true)
    expect(await listed('older_than=2000-01-01T00:00:00Z')).toBe(false)
    expect(await listed('node_id=nowhere')).toBe(false)
    expect((await olga('GET', '/operations/nowhere')).status).toBe(404)
    expect((await olga('POST', `/operations/${id}/retry`)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
  })
})

test(
  'capacity says per zone and pool what there is, what is used, and ' + 'whether the loss of a node could be borne',
  async () => {
    const zone = 'zone-of-capacity'
    const add = (node: string, cpuPool: string | null, isSchedulable = true) =>
      mirrorNode(cloud.db, {
        node,
        zone,
        rack: 'r',
        cpuPool,
        dedicatedAccountId: null,
        isSchedulable,
        total: { cores: 4, memoryMebibytes: 4_096, storageGibibytes: 50 },
      })
    await add('cap-1', null)
    await place('cap-1', 'cap-server', 3_000)
    const read = async () => (await olga('GET', `/capacity?zone=${zone}`)).body['items']
    expect(await read()).toEqual([
      {
        zone,
        cpu_pool: null,
        node_count: 1,
        logical_cpus: 0,
        vcpus: 4,
        vcpus_used: 1,
        memory_mebibytes: 4_096,
        memory_used_mebibytes: 3_000,
        largest_placeable_plan: expect.any(String),
        has_ha_headroom: false,
      },
    ])
    await add('cap-2', null)
    expect(await read()).toMatchObject([{ node_count: 2, has_ha_headroom: true }])
    await add('cap-2', null, false)
    expect(await read()).toMatchObject([{ node_count: 2, has_ha_headroom: false }])
    await add('cap-3', 'fast')
    expect(await read()).toMatchObject([
      { cpu_pool: null, has_ha_headroom: true },
      { cpu_pool: 'fast', node_count: 1 },
    ])
    const groupId = randomUUID()
    await cloud.db
      .insertInto('server_group')
      .values({
        account_id: owner.accountId,
        id: groupId,
        name: zone,
        zone,
        region: 'eu-1',
        spread: 'host',
        is_strict: true,
        generation: 1,
        created_at: new Date(),
      })
      .execute()
    await place('cap-1', 'cap-together-1', 16, groupId)
    await place('cap-3', 'cap-together-2', 16, groupId)
    expect(await read()).toMatchObject([{ cpu_pool: null, has_ha_headroom: false }, { cpu_pool: 'fast' }])
  },
)
