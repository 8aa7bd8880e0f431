/** Server groups with kubectl, with real controllers and a real database. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { listAudit } from '../../../../db/audit/index.ts'
import { recordIntent } from '../../../../db/change/index.ts'
import { recordKubernetesRequest } from '../../../../db/request/index.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { addServerGroup, findServerGroup } from '../../../../db/server-group/index.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import { ServerGroup, type ServerGroupSpec } from '../../../../resources/server-group/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, NODE, openCloud, ZONE } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  cloud.startAgent()
  cloud.startControllers()
})
afterAll(() => cloud.close())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})

const create = (spec: Partial<ServerGroupSpec> = {}, name = 'front') =>
  cloud.kubectl.create(ServerGroup, {
    metadata: { name, namespace },
    spec: { name: 'Front', spread: 'host', zone: ZONE, strict: true, ...spec } as ServerGroupSpec,
  })
const read = (name = 'front') => cloud.kubectl.get(ServerGroup, { namespace, name })
const condition = async (type: string, name = 'front') =>
  (await read(name))?.status?.conditions?.find((one) => one.type === type)
const row = (groupId = 'front') => findServerGroup(database.db, { accountId, groupId })
const used = async () => (await listQuotas(database.db, accountId)).find(({ name }) => name === 'server_groups')?.used
const join = (name: string) =>
  cloud.kubectl.create(Server, {
    metadata: { name, namespace },
    spec: {
      hostname: name,
      zone: ZONE,
      plan: 'tiny',
      template: 'tiny-linux',
      serverGroupId: 'front',
    } as unknown as ServerSpec,
  }) // the API server fills in the defaults
const stateOf = async (name: string) => (await cloud.kubectl.get(Server, { namespace, name }))?.status?.state

test(
  'a group is claimed, renamed and deleted with its claims; each ' + 'request has an entry in the name of who asked',
  async () => {
    const {
      metadata: { uid = '' },
    } = await create()
    const ask = (action: string, generation: number) =>
      recordKubernetesRequest(database.db, {
        uid,
        action,
        generation,
        username: 'grace@example.com',
        requestedAt: new Date(),
        changes: [],
      })
    await expect
      .poll(() => row())
      .toMatchObject({ name: 'Front', zone: ZONE, region: 'eu-1', spread: 'host', isStrict: true })
    await expect.poll(() => condition('Ready')).toMatchObject({ status: 'True' })
    expect([(await read())?.status, await used()]).toMatchObject([
      { region: 'eu-1', memberCount: 0, unmetMembers: [] },
      1,
    ])

    await ask('server_group.update', 2)
    await cloud.kubectl.patch(ServerGroup, { namespace, name: 'front' }, { spec: { name: 'Renamed' } })
    await expect.poll(() => row()).toMatchObject({ name: 'Renamed', generation: 2 })
    await ask('server_group.delete', 3)
    await cloud.kubectl.delete(ServerGroup, { namespace, name: 'front' })
    await expect.poll(() => read()).toBeUndefined()
    expect([await row(), await used()]).toEqual([undefined, 0])
    expect(
      (await listAudit(database.db, accountId, { limit: 10 })).map(
        ({ action, actor_email, resource_type, resource_id }) =>
          `${action} ${actor_email} ${resource_type} ${resource_id}`,
      ),
    ).toEqual([
      'server_group.delete user:grace@example.com server_group front',
      'server_group.update user:grace@example.com server_group front',
    ])
  },
)

test('a group that is refused says why, and is claimed when it can be', async () => {
  await create()
  await expect.poll(() => condition('Ready')).toMatchObject({ status: 'True' })
  await create({}, 'twin')
  await expect.poll(() => condition('Stalled', 'twin')).toMatchObject({ status: 'True', reason: 'NameTaken' })
  await cloud.kubectl.delete(ServerGroup, { namespace, name: 'front' })
  await expect.poll(() => condition('Ready', 'twin')).toMatchObject({ status: 'True' })
  expect(await used()).toBe(1)
})

test('servers made with kubectl are kept apart, and keep their group', async () => {
  await create()
  await join('one')
  await expect.poll(() => stateOf('one')).toBe('started')
  await expect.poll(async () => (await read())?.status?.memberCount).toBe(1)
  await join('two')
  await expect
    .poll(async () =>
      (await cloud.kubectl.get(Server, { namespace, name: 'two' }))?.status?.conditions?.find(
        ({ type }) => type === 'Claimed',
      ),
    )
    .toMatchObject({ status: 'False', reason: 'NoDistinctFailureDomain', message: expect.stringContaining('strict') })
  await cloud.kubectl.delete(ServerGroup, { namespace, name: 'front' })
  await expect.poll(() => condition('Ready')).toMatchObject({ status: 'False', reason: 'InUse' })

  // Room elsewhere comes.
  await mirrorNode(database.db, {
    node: `other-${accountId}`,
    zone: ZONE,
    rack: 'r2',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 4, memoryMebibytes: 4_096, storageGibibytes: 10 },
  })
  const placed = async () =>
    (
      await database.db
        .selectFrom('placement')
        .select('node')
        .where('group_id', '=', 'front')
        .where('account_id', '=', accountId)
        .orderBy('claimed_at')
        .execute()
    ).map(({ node }) => node)
  await expect.poll(placed).toEqual([NODE, `other-${accountId}`])
  for (const name of ['one', 'two']) await cloud.kubectl.delete(Server, { namespace, name })
  await database.db
    .updateTable('node_capacity')
    .set({ is_schedulable: false })
    .where('node', '=', `other-${accountId}`)
    .execute()
})

test(
  'an accepted change that was never written is settled: what it ' + 'claimed goes, and its entry says that it failed',
  async () => {
    const now = new Date(0)
    await database.db.transaction().execute(async (tx) => {
      await addServerGroup(tx, accountId, {
        id: 'lost',
        name: 'Lost',
        zone: ZONE,
        region: 'eu-1',
        spread: 'host',
        isStrict: false,
        generation: 1,
        createdAt: now,
      })
      await recordIntent(tx, {
        operationId: newUuid(systemRandom),
        accountId,
        resource: { type: 'server_group', id: 'lost' },
        createdAt: now,
        audit: {
          account_id: accountId,
          actor_email: 'ada@example.com',
          actor_kind: 'user',
          user_id: null,
          staff_id: null,
          token_id: null,
          token_name: null,
          action: 'server_group.create',
          resource_type: 'server_group',
          resource_id: 'lost',
          detail: {},
          outcome: 'success',
          source_ip: '',
          user_agent: '',
          request_id: 'request-1',
          changes: [],
        },
      })
    })
    await expect.poll(() => row('lost')).toBeUndefined()
    expect(
      (await listAudit(database.db, accountId, { limit: 10 })).map(({ action, outcome }) => `${action} ${outcome}`),
    ).toEqual(['server_group.create failed'])
    expect(await used()).toBe(0)
  },
)
