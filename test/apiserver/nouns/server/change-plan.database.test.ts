/** change_server_plan and rebuild_server as their callers see them. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { findServerClaims } from '../../../../db/server/index.ts'
import { type KubeObject, Secret } from '../../../../kit/kube/object.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Template } from '../../../../resources/catalog/index.ts'
import { Server, type ServerSpec, type ServerState, type ServerStatus } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { progressOf } from '../../../progress.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'
import { setQuotas } from '../../../accounts.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person
let made = 0

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
  for (const name of ['servers', 'cores']) await setQuotas(cloud.db, 1_000, { accountId: ada.accountId, name })
  const tiny = await cloud.admin.get(Template, { name: 'tiny-linux' })
  if (tiny === undefined) throw new Error('the catalog has no tiny-linux')
  await cloud.admin.create(Template, { metadata: { name: 'other-linux' }, spec: tiny.spec })
  await cloud.admin.create(Template, {
    metadata: { name: 'large-linux' },
    spec: { ...tiny.spec, minStorageGibibytes: 100 },
  })
  await vi.waitUntil(() => cloud.caches.of(Template).get({ name: 'large-linux' }) !== undefined)
})
afterAll(() => cloud.close())

const keyOf = (name: string) => ({ namespace: accountNamespace(ada.accountId), name })
const stored = async (id: string) => (await cloud.admin.get(Server, keyOf(id))) as KubeObject<ServerSpec, ServerStatus>
/** As a controller would leave it. */
async function server(state: ServerState, more: object = {}, status: Partial<ServerStatus> = {}): Promise<string> {
  const reply = await ada.send('POST', '/v1/servers', {
    body: {
      zone: cloud.zone,
      hostname: `web-${(made += 1)}`,
      plan: 'tiny',
      template: 'tiny-linux',
      ssh_keys: [PUBLIC_KEY],
      ...more,
    },
  })
  expect(reply.status, reply.text).toBe(202)
  const { id } = reply.body['server']
  const { operation } = (await stored(id)).spec
  if (operation === undefined) throw new Error('it was made without an operation')
  cloud.caches.of(Server).apply(
    await cloud.admin.patch(
      Server,
      keyOf(id),
      {
        status: {
          state,
          storageGibibytes: 1,
          memoryMebibytes: 192,
          cores: 1,
          operation: progressOf(operation),
          ...status,
        },
      },
      'status',
    ),
  )
  return id
}
const changePlan = (id: string, body: object, by: Person = ada) =>
  by.send('POST', `/v1/servers/${id}/change-plan`, { body })
const rebuild = (id: string, body: object = {}, by: Person = ada) =>
  by.send('POST', `/v1/servers/${id}/rebuild`, { body })
const held = async (id: string) => await findServerClaims(cloud.db, { accountId: ada.accountId, serverId: id })
const secrets = async (id: string) =>
  (await cloud.admin.list(Secret, { namespace: accountNamespace(ada.accountId) })).items.filter(({ metadata }) =>
    metadata.name.startsWith(id),
  )

describe('change_server_plan', () => {
  test('answers its operation, and holds the larger size at once', async () => {
    const id = await server('stopped')
    const reply = await changePlan(id, { plan: 'starter-1c-1g' })
    expect(reply.status, reply.text).toBe(202)
    expect(reply.body['operation']).toMatchObject({
      kind: 'server.change_plan',
      status: 'pending',
      step: 'claimed',
      step_count: 3,
      server_id: id,
    })
    expect((await stored(id)).spec).toMatchObject({
      plan: 'starter-1c-1g',
      storageGibibytes: 10,
      desiredPower: 'running',
      operation: { arguments: { previous_plan: 'tiny', previous_storage_gibibytes: '1' } },
    })
    expect(await held(id)).toMatchObject({
      placement: { memoryMebibytes: 1_024, storageGibibytes: 10 },
      sizeChange: { operationId: reply.body['operation'].id },
    })
    expect(await cloud.auditOf(reply)).toMatchObject([
      {
        action: 'server.change_plan',
        outcome: 'success',
        resource_id: id,
        changes: [{ field: 'plan', before: 'tiny', after: 'starter-1c-1g' }],
      },
    ])
    expect((await cloud.admin.get(Operation, keyOf(reply.body['operation'].id)))?.spec.kind).toBe('server.change_plan')
    expect((await changePlan(id, { plan: 'starter-2c-4g' })).body).toMatchObject({
      status: 409,
      reason: 'operation_in_progress',
    })
  })

  test('leaves the disk as it is without grow_storage, and starts the server with start', async () => {
    const id = await server('stopped', { start: false })
    expect((await changePlan(id, { plan: 'starter-1c-1g', grow_storage: false, start: true })).status).toBe(202)
    expect((await stored(id)).spec).toMatchObject({
      storageGibibytes: 1,
      desiredPower: 'running',
      operation: { arguments: { start: 'true' } },
    })
  })

  test.each<[string, ServerState, object, object]>([
    ['of a started server', 'started', { plan: 'starter-1c-1g' }, { status: 409, reason: 'server_not_stopped' }],
    ['of one in error', 'error', { plan: 'starter-1c-1g' }, { status: 409, reason: 'state_not_allowed' }],
    ['to one that is not there', 'stopped', { plan: 'nothing' }, { status: 400, errors: [{ field: 'plan' }] }],
    ['to the one it has', 'stopped', { plan: 'tiny' }, { status: 400, errors: [{ field: 'plan' }] }],
    ['to none', 'stopped', {}, { status: 400 }],
  ])('%s is refused, and nothing is held for it', async (_what, state, body, problem) => {
    const id = await server(state)
    expect((await changePlan(id, body)).body).toMatchObject(problem)
    expect([
      (await held(id))?.sizeChange,
      (await held(id))?.placement.storageGibibytes,
      (await stored(id)).spec.plan,
    ]).toEqual([undefined, 1, 'tiny'])
  })

  test('to one whose storage is smaller than the disk is refused: it never shrinks', async () => {
    const id = await server('stopped', { plan: 'starter-1c-1g' }, { storageGibibytes: 10 })
    expect((await changePlan(id, { plan: 'tiny' })).body).toMatchObject({
      status: 400,
      errors: [{ field: 'plan', detail: expect.stringContaining('never shrinks') }],
    })
  })

  test('is refused above the quota, where no node has room, in bad standing, and to strangers', async () => {
    const id = await server('stopped')
    const limit = (value: number) => setQuotas(cloud.db, value, { accountId: ada.accountId, name: 'memory_mebibytes' })
    await limit(1)
    expect((await changePlan(id, { plan: 'starter-1c-1g' })).body).toMatchObject({
      status: 422,
      reason: 'quota_exceeded',
      quota: { name: 'memory_mebibytes', requested: 832 },
    })
    await limit(1_000_000)
    await cloud.db.updateTable('node_capacity').set({ memory_mebibytes: 1 }).where('node', '=', cloud.node).execute()
    expect((await changePlan(id, { plan: 'starter-1c-1g' })).body).toMatchObject({ status: 503, reason: 'no_capacity' })
    await cloud.db
      .updateTable('node_capacity')
      .set({ memory_mebibytes: 1_048_576 })
      .where('node', '=', cloud.node)
      .execute()
    await cloud.db
      .updateTable('account')
      .set({ suspended_by_staff_at: new Date() })
      .where('id', '=', ada.accountId)
      .execute()
    expect((await changePlan(id, { plan: 'starter-1c-1g' })).body).toMatchObject({
      status: 402,
      reason: 'account_suspended',
    })
    await cloud.db.updateTable('account').set({ suspended_by_staff_at: null }).where('id', '=', ada.accountId).execute()
    expect((await changePlan(id, { plan: 'starter-1c-1g' }, bob)).status).toBe(404)
    expect((await held(id))?.sizeChange).toBeUndefined()
  })

  test('is accepted where only another node has the room, which the operation finds and takes', async () => {
    const id = await server('stopped')
    const other = {
      node: 'roomy',
      zone: cloud.zone,
      rack: 'rack-1',
      cpuPool: null,
      dedicatedAccountId: null,
      isSchedulable: true,
      total: { cores: 8, memoryMebibytes: 16_384, storageGibibytes: 100 },
    }
    await mirrorNode(cloud.db, other)
    await cloud.db.updateTable('node_capacity').set({ memory_mebibytes: 1 }).where('node', '=', cloud.node).execute()
    const reply = await changePlan(id, { plan: 'starter-1c-1g' })
    await cloud.db
      .updateTable('node_capacity')
      .set({ memory_mebibytes: 1_048_576 })
      .where('node', '=', cloud.node)
      .execute()
    await mirrorNode(cloud.db, { ...other, isSchedulable: false })
    expect(reply.body).toMatchObject({
      operation: { kind: 'server.change_plan', status: 'pending', step: 'claimed', step_count: 3 },
    })
    expect((await stored(id)).spec).toMatchObject({
      plan: 'starter-1c-1g',
      storageGibibytes: 10,
      operation: { arguments: { previous_plan: 'tiny', previous_storage_gibibytes: '1' } },
    })
    expect(await held(id)).toMatchObject({ placement: { node: cloud.node, memoryMebibytes: 192, storageGibibytes: 1 } })
    expect([(await held(id))?.sizeChange, (await held(id))?.target]).toEqual([undefined, undefined])
  })

  test('of many at once happens once', async () => {
    const id = await server('stopped')
    const replies = await Promise.all(
      ['starter-1c-1g', 'starter-2c-4g', 'starter-1c-1g', 'starter-2c-4g'].map((plan) => changePlan(id, { plan })),
    )
    expect(replies.map(({ status }) => status).toSorted()).toEqual([202, 409, 409, 409])
    const { plan, operation } = (await stored(id)).spec
    expect(await held(id)).toMatchObject({
      sizeChange: { operationId: operation?.id },
      placement: { cores: plan === 'starter-2c-4g' ? 2 : 1 },
    })
  })
})

describe('rebuild_server', () => {
  test('answers its operation; what is not said stays', async () => {
    const id = await server('stopped', { user_data: 'first' })
    const before = (await stored(id)).spec
    const reply = await rebuild(id)
    expect(reply.status, reply.text).toBe(202)
    expect(reply.body['operation']).toMatchObject({
      kind: 'server.rebuild',
      status: 'pending',
      step: 'stopped',
      server_id: id,
    })
    const after = (await stored(id)).spec
    expect({ ...after, operation: undefined }).toEqual({ ...before, operation: undefined })
    expect(after.operation?.arguments).toEqual({
      previous_boot_storage: id,
      previous_template: 'tiny-linux',
      previous_user_data_secret: `${id}-user-data`,
    })
    expect(await cloud.auditOf(reply)).toMatchObject([{ action: 'server.rebuild', outcome: 'success' }])
  })

  test('takes another template, keys and user data, which lie in a Secret that goes with the server', async () => {
    const id = await server('started')
    const key = PUBLIC_KEY.replace('ada@example', 'other')
    const reply = await rebuild(id, { template: 'other-linux', ssh_keys: [key], user_data: 'second', stop: true })
    expect(reply.status, reply.text).toBe(202)
    const name = `${id}-user-data-${reply.body['operation'].id}`
    const object = await stored(id)
    expect(object.spec).toMatchObject({
      template: 'other-linux',
      sshKeys: [key],
      userDataSecretName: name,
      desiredPower: 'running',
    })
    const [secret] = await secrets(id)
    expect([
      secret?.metadata.name,
      secret?.metadata.ownerReferences?.[0]?.uid,
      Buffer.from(secret?.data?.['userData'] ?? '', 'base64').toString(),
    ]).toEqual([name, object.metadata.uid, 'second'])
    expect(JSON.stringify(object)).not.toContain('second')
  })

  test('takes the user data away when the init script is null, and reads the one that is named', async () => {
    const id = await server('stopped', { user_data: 'first' })
    expect((await rebuild(id, { init_script_id: null })).status).toBe(202)
    expect((await stored(id)).spec.userDataSecretName).toBeUndefined()
    const script = (await ada.send('POST', '/v1/init-scripts', { body: { name: 'setup', content: '#!/bin/sh' } })).body[
      'init_script'
    ].id
    const other = await server('stopped')
    expect((await rebuild(other, { init_script_id: script })).status).toBe(202)
    expect((await stored(other)).spec).toMatchObject({
      initScriptId: script,
      userDataSecretName: expect.stringContaining('user-data'),
    })
  })

  test.each<[string, ServerState, object, object]>([
    ['of a started server without stop', 'started', {}, { status: 409, reason: 'server_not_stopped' }],
    ['of a protected one, before its state', 'started', {}, { status: 409, reason: 'protected' }],
    ['of one in error', 'error', { stop: true }, { status: 409, reason: 'state_not_allowed' }],
    [
      'from a template that is not there',
      'stopped',
      { template: 'windows' },
      { status: 400, errors: [{ field: 'template' }] },
    ],
    [
      'from a template that is too large for it',
      'stopped',
      { template: 'large-linux' },
      { status: 400, errors: [{ field: 'template' }] },
    ],
    ['with no key', 'stopped', { ssh_keys: [] }, { status: 400, errors: [{ field: 'ssh_key_ids' }] }],
    [
      'with both kinds of user data',
      'stopped',
      { init_script_id: 'x', user_data: 'y' },
      { status: 400, errors: [{ field: 'init_script_id' }] },
    ],
  ])('%s is refused, and nothing is left of it', async (what, state, body, problem) => {
    const id = await server(state)
    if (what.includes('protected')) await ada.send('PATCH', `/v1/servers/${id}`, { body: { is_protected: true } })
    expect((await rebuild(id, { ...('user_data' in body ? {} : { user_data: 'x' }), ...body })).body).toMatchObject(
      problem,
    )
    expect([await secrets(id), (await stored(id)).spec.operation?.kind]).toEqual([[], 'server.create'])
    expect((await rebuild(id, body, bob)).status).toBe(404)
  })
})
