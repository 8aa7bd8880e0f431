import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listQuotas } from '../../../../db/account/index.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { ServerGroup } from '../../../../resources/server-group/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { useDatabase } from '../../../database.ts'
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
})
afterAll(() => cloud.close())

/** A separate zone with nodes, each `rack/name`. */
async function zoneWith(...nodes: readonly string[]): Promise<string> {
  const zone = `zone-${(made += 1)}`
  await cloud.admin.create(Zone, {
    metadata: { name: zone },
    spec: { displayName: zone, region: 'eu-1', isClosed: false, capabilities: [] },
  })
  for (const node of nodes) {
    const [rack = '', name = ''] = node.split('/')
    await mirrorNode(cloud.db, {
      node: `${zone}-${name}`,
      zone,
      rack,
      cpuPool: null,
      dedicatedAccountId: null,
      isSchedulable: true,
      total: { cores: 64, memoryMebibytes: 65_536, storageGibibytes: 1_024 },
    })
  }
  await expect.poll(() => cloud.caches.of(Zone).get({ name: zone })).toBeDefined()
  return zone
}
const add = (more: object = {}, by: Person = ada) =>
  by.send('POST', '/v1/server-groups', { body: { name: `group ${(made += 1)}`, zone: cloud.zone, ...more } })
const added = async (more: object = {}): Promise<{ readonly id: string; readonly name: string }> => {
  const reply = await add(more)
  expect(reply.status, reply.text).toBe(201)
  return reply.body['server_group']
}
const read = async (id: string) => (await ada.send('GET', `/v1/server-groups/${id}`)).body['server_group']
const join = (group: string, zone: string, by: Person = ada) =>
  by.send('POST', '/v1/servers', {
    body: {
      zone,
      hostname: `web-${(made += 1)}`,
      plan: 'tiny',
      template: 'tiny-linux',
      ssh_keys: [PUBLIC_KEY],
      server_group_id: group,
    },
  })
const joined = async (group: string, zone: string): Promise<string> => {
  const reply = await join(group, zone)
  expect(reply.status, reply.text).toBe(202)
  expect(reply.body['server'].server_group_id).toBe(group)
  return reply.body['server'].id
}
const nodesOf = async (group: string) =>
  (
    await cloud.db.selectFrom('placement').select('node').where('group_id', '=', group).orderBy('claimed_at').execute()
  ).map(({ node }) => node.replace(/^zone-\d+-/, ''))
const used = async () => (await listQuotas(cloud.db, ada.accountId)).find(({ name }) => name === 'server_groups')?.used
const objectOf = (id: string) => cloud.admin.get(ServerGroup, { namespace: accountNamespace(ada.accountId), name: id })

describe('a server group', () => {
  test('is made, read, renamed and deleted, in Kubernetes as well; each change has one entry', async () => {
    const before = (await used()) ?? 0
    const create = await add({ name: 'front', strict: true })
    expect(create.status, create.text).toBe(201)
    const group = create.body['server_group']
    expect(group).toMatchObject({
      zone: cloud.zone,
      region: 'eu-1',
      name: 'front',
      spread: 'host',
      strict: true,
      policy: 'strict',
      member_count: 0,
    })
    expect(group).not.toHaveProperty('members')
    expect((await objectOf(group.id))?.spec).toEqual({ name: 'front', spread: 'host', zone: cloud.zone, strict: true })

    const update = await ada.send('PATCH', `/v1/server-groups/${group.id}`, { body: { name: 'renamed' } })
    expect([update.status, update.headers['etag']]).toEqual([200, '"2"'])
    expect(update.body['server_group']).toEqual({ ...group, name: 'renamed', members: [], unmet_members: [] })
    expect((await objectOf(group.id))?.spec.name).toBe('renamed')
    expect([await used(), await read(group.id)]).toEqual([
      before + 1,
      { ...group, name: 'renamed', members: [], unmet_members: [] },
    ])

    const remove = await ada.send('DELETE', `/v1/server-groups/${group.id}`)
    expect(remove.status, remove.text).toBe(204)
    expect([(await ada.send('GET', `/v1/server-groups/${group.id}`)).status, await used()]).toEqual([404, before])
    expect((await objectOf(group.id))?.metadata.deletionTimestamp).toBeDefined()
    const entries = (await Promise.all([create, update, remove].map((reply) => cloud.auditOf(reply)))).flat()
    expect(entries.map(({ action, outcome, resource_id }) => `${action} ${outcome} ${resource_id}`)).toEqual(
      ['create', 'update', 'delete'].map((verb) => `server_group.${verb} success ${group.id}`),
    )
    expect(await cloud.db.selectFrom('change_intent').selectAll().execute()).toEqual([])
  })

  test.each([
    [{ policy: 'strict' }, true],
    [{ policy: 'soft' }, false],
    [{ strict: true }, true],
    [{}, false],
  ])('of %j is strict: %s', async (more, strict) =>
    expect(await added(more)).toMatchObject({ strict, policy: strict ? 'strict' : 'soft' }),
  )

  test('across zones has a region and no zone; a zone may name the region', async () => {
    expect(await added({ spread: 'zone' })).toMatchObject({ zone: null, region: 'eu-1', spread: 'zone' })
    expect(await added({ spread: 'zone', zone: undefined, region: 'eu-1' })).toMatchObject({
      zone: null,
      region: 'eu-1',
    })
  })

  test('has a unique name, also among many at once', async () => {
    const first = await added({ name: 'mine' })
    expect((await add({ name: 'mine' })).body).toMatchObject({
      status: 409,
      reason: 'name_taken',
      resource: { type: 'server_group', id: first.id },
    })
    const other = await added()
    expect((await ada.send('PATCH', `/v1/server-groups/${other.id}`, { body: { name: 'mine' } })).body).toMatchObject({
      status: 409,
      reason: 'name_taken',
    })
    expect((await ada.send('PATCH', `/v1/server-groups/${first.id}`, { body: { name: 'mine' } })).status).toBe(200)
    expect((await add({ name: 'mine' }, bob)).status).toBe(201)
    const racers = await Promise.all([
      add({ name: 'raced' }),
      ada.send('PATCH', `/v1/server-groups/${other.id}`, { body: { name: 'raced' } }),
      add({ name: 'raced' }),
    ])
    expect(racers.map(({ status }) => (status < 300 ? 'done' : status)).toSorted()).toEqual([409, 409, 'done'])
  })

  test('changes only in the version that If-Match names', async () => {
    const { id } = await added()
    const change = (name: string) =>
      ada.send('PATCH', `/v1/server-groups/${id}`, { body: { name }, headers: { 'if-match': '"1"' } })
    expect([(await change(`one ${id}`)).status, (await change(`two ${id}`)).status]).toEqual([200, 409])
  })

  test('is one too many above the limit of 100', async () => {
    expect((await listQuotas(cloud.db, ada.accountId)).find(({ name }) => name === 'server_groups')?.limit).toBe(100)
    const limit = (value: number) => setQuotas(cloud.db, value, { accountId: ada.accountId, name: 'server_groups' })
    await limit((await used()) ?? 0)
    expect((await add()).body).toMatchObject({
      status: 422,
      reason: 'quota_exceeded',
      quota: { name: 'server_groups' },
    })
    await limit(100)
  })

  test('is listed newest first, page by page, without members', async () => {
    const all = (await ada.send('GET', '/v1/server-groups')).body['items'] as { readonly id: string }[]
    expect(all.every((group) => !('members' in group))).toBe(true)
    const first = (await ada.send('GET', '/v1/server-groups?limit=2')).body
    const rest = (await ada.send('GET', `/v1/server-groups?cursor=${first['next_cursor']}`)).body
    expect([...first['items'], ...rest['items']]).toEqual(all)
    expect((await bob.send('GET', `/v1/server-groups/${all[0]?.id}`)).status).toBe(404)
  })
})

describe('servers of a group', () => {
  test('host: are on different nodes, on different racks where that can be', async () => {
    const zone = await zoneWith('r1/a', 'r1/b', 'r2/c')
    const group = await added({ zone, strict: true })
    const ids = [await joined(group.id, zone), await joined(group.id, zone), await joined(group.id, zone)]
    expect(await nodesOf(group.id)).toEqual(['a', 'c', 'b'])
    expect(await read(group.id)).toMatchObject({ member_count: 3, members: ids, unmet_members: [] })
    const late = await join(group.id, zone)
    expect(late.body).toMatchObject({ status: 503, reason: 'no_distinct_failure_domain' })
    expect(await cloud.auditOf(late)).toMatchObject([{ action: 'server.create', outcome: 'failed' }])
    expect(await read(group.id)).toMatchObject({ member_count: 3 })
  })

  test('rack: are in different racks, or nowhere when strict', async () => {
    const zone = await zoneWith('r1/a', 'r1/b', 'r2/c')
    const group = await added({ zone, spread: 'rack', policy: 'strict' })
    await joined(group.id, zone)
    await joined(group.id, zone)
    expect(await nodesOf(group.id)).toEqual(['a', 'c'])
    expect((await join(group.id, zone)).body).toMatchObject({ status: 503, reason: 'no_distinct_failure_domain' })
  })

  test('zone: are in different zones of the region', async () => {
    const [one, two] = [await zoneWith('r1/a', 'r1/b'), await zoneWith('r1/a')]
    const group = await added({ spread: 'zone', zone: one, strict: true })
    await joined(group.id, one)
    await joined(group.id, two)
    expect((await join(group.id, one)).body).toMatchObject({ status: 503, reason: 'no_distinct_failure_domain' })
    const soft = await added({ spread: 'zone', zone: one })
    await joined(soft.id, one)
    const second = await joined(soft.id, one)
    expect([await nodesOf(soft.id), (await read(soft.id)).unmet_members]).toEqual([['a', 'b'], [second]])
  })

  test('soft: may share a node, and the group says which one does', async () => {
    const zone = await zoneWith('r1/a', 'r2/b')
    const group = await added({ zone })
    const ids = [await joined(group.id, zone), await joined(group.id, zone), await joined(group.id, zone)]
    expect(await read(group.id)).toMatchObject({ members: ids, unmet_members: [ids[2]] })
  })

  test('live where the group does: another zone, another account and no group are 400', async () => {
    const zone = await zoneWith('r1/a')
    const group = await added({ zone })
    const theirs = (await add({}, bob)).body['server_group'].id
    for (const [id, where] of [
      [group.id, cloud.zone],
      [theirs, cloud.zone],
      ['nobody', zone],
    ] as const) {
      expect((await join(id, where)).body, id).toMatchObject({ status: 400, errors: [{ field: 'server_group_id' }] })
    }
  })

  test('keep it from being deleted: 409 in_use until the last one is deleted', async () => {
    const zone = await zoneWith('r1/a')
    const group = await added({ zone })
    await joined(group.id, zone)
    const refused = await ada.send('DELETE', `/v1/server-groups/${group.id}`)
    expect(refused.body).toMatchObject({
      status: 409,
      reason: 'in_use',
      resource: { type: 'server_group', id: group.id },
    })
    expect(await cloud.auditOf(refused)).toMatchObject([{ action: 'server_group.delete', outcome: 'failed' }])
    expect(await read(group.id)).toMatchObject({ member_count: 1 })
    await cloud.db.deleteFrom('placement').where('group_id', '=', group.id).execute()
    expect((await ada.send('DELETE', `/v1/server-groups/${group.id}`)).status).toBe(204)
  })

  test('that come while the group goes: one of both happens, never both', async () => {
    const zone = await zoneWith('r1/a')
    for (let round = 0; round < 10; round++) {
      const group = await added({ zone })
      const [create, remove] = await Promise.all([
        join(group.id, zone),
        ada.send('DELETE', `/v1/server-groups/${group.id}`),
      ])
      expect(
        [
          [202, 409],
          [400, 204],
        ],
        `${create.text} ${remove.text}`,
      ).toContainEqual([create.status, remove.status])
      await cloud.db.deleteFrom('placement').where('group_id', '=', group.id).execute()
      await cloud.db
        .updateTable('account_quota')
        .set({ used: 0 })
        .where('account_id', '=', ada.accountId)
        .where('name', '=', 'servers')
        .execute()
    }
  })

  test('that come at once never share when the group is strict', async () => {
    const zone = await zoneWith('r1/a', 'r1/b', 'r1/c')
    const group = await added({ zone, strict: true })
    const replies = await Promise.all(Array.from({ length: 8 }, () => join(group.id, zone)))
    expect(replies.map(({ status }) => status).toSorted()).toEqual([202, 202, 202, 503, 503, 503, 503, 503])
    expect((await nodesOf(group.id)).toSorted()).toEqual(['a', 'b', 'c'])
  })
})
