/** Requests for private hosts, from the wish to the nodes; a decision and what follows from it is one. */
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { claimBestRoom, findCandidate, listBestNodes, mirrorNode } from '../../../../db/placement/index.ts'
import { claimServer } from '../../../../db/server/index.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { ASKED } from './sample.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let other: Person

const ROOM = { cores: 16, memoryMebibytes: 65_536, storageGibibytes: 500 }
const nodeOf = (node: string, dedicatedAccountId: string | null = null) => ({
  node,
  zone: cloud.zone,
  rack: 'r',
  cpuPool: null,
  dedicatedAccountId,
  isSchedulable: true,
  total: ROOM,
})

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  other = await cloud.signUp('other@example.com')
  await cloud.grant('boss', [{ resources: ['staffroles'], verbs: ['use'] }])
  await sql`
    insert into staff_user (id, email, name, password_hash, role, created_at) values
      (${newUuid(random)}, 'boss@staff.example', 'B', 'x', 'operations', now()),
      (${newUuid(random)}, 'money@staff.example', 'M', 'x', 'finance', now())`.execute(database.db)
  for (const node of ['own-1', 'own-2', 'busy']) await mirrorNode(database.db, nodeOf(node))
})
afterAll(() => cloud.close())

const ask = (body: object = ASKED, person = owner) => person.send('POST', '/v1/private-cloud/requests', { body })
const overview = async () => (await owner.send('GET', '/v1/private-cloud')).body
const decide = (id: string, verb: string, body?: object) =>
  cloud.operate('boss', 'POST', `/v1/admin/private-cloud-requests/${id}/${verb}`, body)
const mailsTo = async (recipient: string) =>
  (await database.db.selectFrom('email_outbox').select('subject').where('recipient', '=', recipient).execute())
    .map(({ subject }) => subject)
    .filter((subject) => /private hosts/.test(subject))
const placed = (accountId: string, serverId: string) =>
  database.db.transaction().execute((tx) =>
    claimServer(
      tx,
      {
        accountId,
        serverId,
        hostname: serverId,
        zone: cloud.zone,
        cores: 4,
        memoryMebibytes: 1_024,
        storageGibibytes: 10,
      },
      { now: new Date(), random },
    ),
  )

test.each([
  ['too little', { ...ASKED, vcpus: 3 }, 422],
  ['too much', { ...ASKED, disk_gigabytes: 2_000_001 }, 422],
  ['half a core', { ...ASKED, vcpus: 16.5 }, 400],
  ['an unknown region', { ...ASKED, region: 'moon-1' }, 422],
  ['a book', { ...ASKED, notes: 'x'.repeat(2_001) }, 422],
  ['nothing', {}, 400],
])('%s cannot be asked for', async (_what, body, status) => {
  expect((await ask(body)).status).toBe(status)
  expect((await overview())['recent_requests']).toEqual([])
})

test('one request at a time; staff hear of it, and only its account can withdraw it', async () => {
  const made = await ask({ ...ASKED, region: 'eu-1', notes: 'Soon.' })
  expect([made.status, made.body['request']]).toMatchObject([
    201,
    { ...ASKED, state: 'open', region: 'eu-1', notes: 'Soon.', requested_by_email: 'owner@example.com' },
  ])
  expect((await ask()).status).toBe(409)
  expect((await overview())['open_request'].id).toBe(made.body['request'].id)
  expect([await mailsTo('boss@staff.example'), await mailsTo('money@staff.example')]).toEqual([
    ['A request for private hosts'],
    [],
  ])
  const path = `/v1/private-cloud/requests/${made.body['request'].id}`
  expect((await other.send('DELETE', path)).status).toBe(404)
  const withdrawn = await owner.send('DELETE', path)
  expect([withdrawn.status, withdrawn.body['request'].state]).toEqual([200, 'withdrawn'])
  expect((await owner.send('DELETE', path)).status).toBe(409)
  expect((await overview())['open_request']).toBeNull()
  for (let turn = 0; turn < 4; turn++)
    await owner.send('DELETE', `/v1/private-cloud/requests/${(await ask()).body['request'].id}`)
  expect((await mailsTo('boss@staff.example')).length).toBe(5)
})

test('staff review and decline with a reason, which the account reads', async () => {
  const { id } = (await ask()).body['request']
  expect((await decide(id, 'fulfil', { node_ids: ['own-1'] })).status).toBe(409)
  expect((await decide(id, 'review')).body['request']).toMatchObject({ state: 'in_review', decided_at: null })
  expect((await decide(id, 'review')).status).toBe(409)
  expect((await decide(newUuid(random), 'review')).status).toBe(404)
  expect((await decide(id, 'decline', { staff_reason: ' ' })).status).toBe(400)
  const declined = await decide(id, 'decline', { staff_reason: 'Nothing is free.' })
  expect(declined.body['request']).toMatchObject({ state: 'declined', account_id: owner.accountId })
  expect(await cloud.staffAuditOf(declined)).toMatchObject([
    { action: 'private_cloud_request.decline', resource_id: id },
  ])
  expect((await overview())['recent_requests'][0]).toMatchObject({ id, staff_reason: 'Nothing is free.' })
  expect(await mailsTo('owner@example.com')).toEqual(['Your request for private hosts'])
  const listed = await cloud.operate('boss', 'GET', '/v1/admin/private-cloud-requests?state=declined')
  expect((listed.body['items'] as { id: string }[]).map((item) => item.id)).toEqual([id])
})

test('nodes are given only when they are free and large enough, and from then on to nobody else', async () => {
  const { id } = (await ask({ ...ASKED, vcpus: 32 })).body['request']
  await decide(id, 'review')
  await sql`update node_capacity set is_schedulable = node = 'busy'`.execute(database.db)
  await placed(other.accountId, newUuid(random))
  await sql`update node_capacity set is_schedulable = true`.execute(database.db)
  const fulfil = (...nodes: string[]) => decide(id, 'fulfil', { node_ids: nodes })
  expect((await fulfil('own-1', 'nowhere')).status).toBe(400)
  expect((await fulfil('own-1', 'busy')).body).toMatchObject({ status: 409, reason: 'in_use' })
  expect((await fulfil('own-1')).body).toMatchObject({ status: 409, detail: expect.stringContaining('too small') })
  expect((await findCandidate(database.db, 'own-1'))?.dedicatedAccountId).toBeNull()
  const done = await fulfil('own-1', 'own-2')
  expect([done.status, done.body['request'].state]).toEqual([200, 'fulfilled'])
  expect((await mailsTo('owner@example.com')).at(-1)).toBe('Your private hosts are ready')
  // The object of the node says nothing of it yet, and takes nothing back.
  await mirrorNode(database.db, nodeOf('own-1'))
  expect((await findCandidate(database.db, 'own-1'))?.dedicatedAccountId).toBe(owner.accountId)
  await mirrorNode(database.db, nodeOf('own-1', owner.accountId))
  await mirrorNode(database.db, nodeOf('own-1'))
  expect((await findCandidate(database.db, 'own-1'))?.dedicatedAccountId).toBeNull()
  await mirrorNode(database.db, nodeOf('own-1', owner.accountId))
})

test('servers of the account are placed there and counted, those of others are not', async () => {
  const server = newUuid(random)
  await placed(owner.accountId, server)
  const totals = { host_count: 2, vcpus: 32, vcpus_used: 4, memory_used_mebibytes: 1_024, server_count: 1 }
  expect(await overview()).toMatchObject({
    has_private_hosts: true,
    totals: { ...totals, disk_gigabytes: 1_073, local_storage_used_gibibytes: 10 },
    zones: [{ zone: cloud.zone, region: 'eu-1', ...totals }],
    servers_truncated: false,
  })
  const demand = { accountId: other.accountId, zone: cloud.zone, cores: 1, memoryMebibytes: 1, storageGibibytes: 1 }
  expect((await listBestNodes(database.db, demand)).map(({ node }) => node)).not.toContain('own-2')
  expect((await other.send('GET', '/v1/private-cloud')).body).toMatchObject({ has_private_hosts: false, zones: [] })
})

test('a server that was on its way to a node when that was given away goes elsewhere', async () => {
  await sql`update node_capacity set dedicated_account_id = null where node = 'own-2'`.execute(database.db)
  const chosen = { accountId: other.accountId, zone: cloud.zone, cores: 1, memoryMebibytes: 1, storageGibibytes: 1 }
  const candidates = await listBestNodes(database.db, chosen)
  await mirrorNode(database.db, nodeOf('own-2', owner.accountId))
  const stale = candidates.filter(({ node }) => node === 'own-2')
  expect(stale).toHaveLength(1)
  await expect(
    database.db.transaction().execute((tx) => claimBestRoom(tx, chosen, async () => stale)),
  ).rejects.toMatchObject({ status: 503 })
})
