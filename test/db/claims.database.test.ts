import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import { findMacAddress } from '../../db/claim/index.ts'
import { forgetNode, mirrorNode } from '../../db/placement/nodes.ts'
import { listCandidates } from '../../db/placement/placement.ts'
import { releaseQuotas, listQuotas, takeQuotas } from '../../db/account/quotas.ts'
import {
  claimServer,
  claimServers,
  findServerClaims,
  findServersClaims,
  batchKeyOf,
  releaseServer,
  type ServerDemand,
} from '../../db/server/claims.ts'
import { Problem } from '../../domain/problem.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { createAccount, setQuotas } from '../accounts.ts'
import { useDatabase } from '../database.ts'

const database = useDatabase()
const now = new Date('2026-01-01T00:00:00Z')
const NOTHING_USED = { cores: 0, memoryMebibytes: 0, storageGibibytes: 0 }

let accountId: string
let zone: string
let zones = 0

beforeEach(async () => {
  accountId = await createAccount(database.db)
  zone = `zone-${++zones}`
})

const addNode = (name: string, cores: number, isSchedulable = true) =>
  mirrorNode(database.db, {
    node: `${zone}-${name}`,
    zone,
    rack: 'rack-1',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable,
    total: { cores, memoryMebibytes: 1_000_000, storageGibibytes: 1_000_000 },
  })
const demandOf = (changes: Partial<ServerDemand> = {}): ServerDemand => {
  const serverId = newUuid(systemRandom)
  return {
    accountId,
    serverId,
    hostname: `host-${serverId}`,
    zone,
    cores: 1,
    memoryMebibytes: 512,
    storageGibibytes: 1,
    ...changes,
  }
}
const claim = (demand: ServerDemand) =>
  database.db.transaction().execute((tx) => claimServer(tx, demand, { now, random: systemRandom }))
const release = (demand: ServerDemand) => database.db.transaction().execute((tx) => releaseServer(tx, demand))
const usedOnNodes = async () => (await listCandidates(database.db, zone)).map((node) => node.used.cores)
const usedQuota = async (name: string) =>
  (await listQuotas(database.db, accountId)).find((quota) => quota.name === name)?.used
const setLimit = (name: string, limit: number) =>
  database.db
    .updateTable('account_quota')
    .set({ limit })
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .execute()
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => (error instanceof Problem ? error : Promise.reject(error)),
  )

describe('a server', () => {
  test('holds quota, hostname, address and room, and gives them back', async () => {
    await addNode('a', 4)
    const demand = demandOf()
    const claims = await claim(demand)
    expect(claims.placement.node).toBe(`${zone}-a`)
    expect(claims.macAddress).toMatch(/^52:54:00(:[0-9a-f]{2}){3}$/)
    expect(await findServerClaims(database.db, demand)).toEqual(claims)
    expect([
      await usedQuota('servers'),
      await usedQuota('cores'),
      await usedQuota('storage_gibibytes'),
      await usedOnNodes(),
    ]).toEqual([1, 1, 1, [1]])
    await release(demand)
    expect(await findServerClaims(database.db, demand)).toBeUndefined()
    expect([
      await usedQuota('servers'),
      await usedQuota('cores'),
      await usedQuota('storage_gibibytes'),
      await usedOnNodes(),
    ]).toEqual([0, 0, 0, [0]])
  })

  test('that claims or gives back twice counts once', async () => {
    await addNode('a', 4)
    const demand = demandOf()
    expect(await claim(demand)).toEqual(await claim(demand))
    expect([await usedQuota('servers'), await usedOnNodes()]).toEqual([1, [1]])
    await release(demand)
    await release(demand)
    expect([await usedQuota('servers'), await usedOnNodes()]).toEqual([0, [0]])
  })

  test('that is refused leaves nothing', async () => {
    await addNode('a', 1)
    await claim(demandOf())
    const late = demandOf()
    expect(await refusal(claim(late))).toMatchObject({ status: 503, members: { reason: 'no_capacity' } })
    expect([await usedQuota('servers'), await usedQuota('storages'), await usedOnNodes()]).toEqual([1, 1, [1]])
    expect(await findMacAddress(database.db, { accountId, holder: `server/${late.serverId}` })).toBeUndefined()
  })

  test('may have a hostname of another account or zone, but not one of its own account', async () => {
    await addNode('a', 8)
    const web = demandOf({ hostname: 'web' })
    await claim(web)
    expect(await refusal(claim(demandOf({ hostname: 'web' })))).toMatchObject({
      status: 409,
      members: { reason: 'name_taken', resource: { type: 'server', id: web.serverId } },
    })
    const other = await createAccount(database.db)
    expect(await refusal(claim(demandOf({ hostname: 'web', accountId: other })))).toBeUndefined()
  })

  test('is never put on a node that takes nothing new', async () => {
    await addNode('a', 8, false)
    expect(await refusal(claim(demandOf()))).toMatchObject({ members: { reason: 'no_capacity' } })
  })
})

describe('servers that are asked for together', () => {
  test('are answered in the order of asking, whosever they are, and those without claims too', async () => {
    await addNode('a', 8)
    const other = await createAccount(database.db)
    const [mine, theirs, none] = [demandOf(), demandOf({ accountId: other }), demandOf()]
    const [held, heldByThem] = [await claim(mine), await claim(theirs)]
    expect(await findServersClaims(database.db, [none, theirs, mine, theirs])).toEqual([
      undefined,
      heldByThem,
      held,
      heldByThem,
    ])
    expect(await findServersClaims(database.db, [{ ...mine, accountId: other }])).toEqual([undefined])
    expect(await findServersClaims(database.db, [])).toEqual([])
  })
})

describe('a quota', () => {
  test('refuses with its name, limit and use', async () => {
    await addNode('a', 100)
    await setLimit('cores', 3)
    await claim(demandOf({ cores: 2 }))
    expect((await refusal(claim(demandOf({ cores: 2 }))))?.toDocument()).toMatchObject({
      status: 422,
      reason: 'quota_exceeded',
      quota: { name: 'cores', limit: 3, used: 2, requested: 2 },
    })
  })

  test('below what is used takes nothing and still gives back', async () => {
    await addNode('a', 100)
    const demand = demandOf()
    await claim(demand)
    await setLimit('servers', 0)
    expect(await refusal(claim(demandOf()))).toMatchObject({ members: { quota: { used: 1, limit: 0 } } })
    await release(demand)
    expect(await usedQuota('servers')).toBe(0)
  })

  test('of an account that is older than the quota appears with its default', async () => {
    await database.db.deleteFrom('account_quota').where('account_id', '=', accountId).execute()
    const holding = { accountId, holder: 'ssh_key/1' } as const
    await database.db.transaction().execute((tx) => takeQuotas(tx, { ...holding, amounts: { ssh_keys: 1 } }))
    expect(await usedQuota('ssh_keys')).toBe(1)
    await database.db.transaction().execute((tx) => releaseQuotas(tx, holding))
    expect(await usedQuota('ssh_keys')).toBe(0)
  })
})

describe('a hundred at once', () => {
  test('never take more room than there is, and all of it', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await addNode(name, 10)
    await setLimit('servers', 1_000)
    await setLimit('cores', 1_000)
    const sizes = Array.from({ length: 100 }, (_, index) => demandOf({ cores: 1 + (index % 2) }))
    const refusals = await Promise.all(sizes.map((demand) => refusal(claim(demand))))
    expect(refusals.filter((problem) => problem !== undefined && problem.members.reason !== 'no_capacity')).toEqual([])
    const placed = sizes.filter((_, index) => refusals[index] === undefined)
    const used = await usedOnNodes()
    expect(used.every((cores) => cores <= 10)).toBe(true)
    expect(used.reduce((sum, cores) => sum + cores, 0)).toBe(placed.reduce((sum, demand) => sum + demand.cores, 0))
    expect(used.reduce((sum, cores) => sum + cores, 0)).toBe(40)
    expect(await usedQuota('servers')).toBe(placed.length)
    await Promise.all([...placed, ...placed].map(release))
    expect([await usedOnNodes(), await usedQuota('servers'), await usedQuota('cores')]).toEqual([[0, 0, 0, 0], 0, 0])
  })

  test('of several accounts never wait for each other forever, and never exceed a quota', async () => {
    for (const name of ['a', 'b', 'c']) await addNode(name, 64)
    const accounts = await Promise.all([1, 2, 3, 4].map(() => createAccount(database.db)))
    const results = await Promise.all(
      accounts.flatMap((id) => Array.from({ length: 30 }, () => refusal(claim(demandOf({ accountId: id }))))),
    )
    expect(new Set(results.map((problem) => problem?.members.reason))).toEqual(new Set([undefined, 'quota_exceeded']))
    for (const id of accounts)
      expect((await listQuotas(database.db, id)).find((quota) => quota.name === 'servers')?.used).toBe(25)
    const addresses = await database.db
      .selectFrom('address_claim')
      .select('value')
      .where('kind', '=', 'mac')
      .where('account_id', 'in', accounts)
      .execute()
    expect(new Set(addresses.map((row) => row.value)).size).toBe(100)
  })
})

describe('servers that are alike', () => {
  const claimTogether = (demands: readonly ServerDemand[]) =>
    database.db.transaction().execute((tx) => claimServers(tx, demands, { now, random: systemRandom }))

  test('get together what each would get in its turn', async () => {
    await addNode('a', 10)
    await addNode('b', 4)
    await claim(demandOf({ cores: 1 })) // the smaller node is the fuller one
    const demands = [1, 2, 3].map(() => demandOf())
    const claims = await claimTogether(demands)
    expect(claims.map(({ placement }) => [placement.serverId, placement.node])).toEqual(
      demands.map(({ serverId }) => [serverId, `${zone}-b`]),
    )
    for (const [index, demand] of demands.entries())
      expect(await findServerClaims(database.db, demand)).toEqual(claims[index])
    expect([await usedQuota('servers'), await usedQuota('storages'), await usedOnNodes()]).toEqual([4, 4, [0, 4]])
    expect(new Set(claims.map(({ macAddress }) => macAddress)).size).toBe(3)
  })

  test('are claimed once, whichever of them came before', async () => {
    await addNode('a', 10)
    const demands = [1, 2, 3].map(() => demandOf())
    const [, second] = demands
    const earlier = await claim(second as ServerDemand) // there are three
    const claims = await claimTogether(demands)
    expect(claims[1]).toEqual(earlier)
    expect(await claimTogether(demands)).toEqual(claims)
    expect([await usedQuota('servers'), await usedOnNodes()]).toEqual([3, [3]])
  })

  test.each<[string, (demands: ServerDemand[]) => Promise<unknown>, Record<string, unknown>]>([
    ['a quota', () => setLimit('servers', 2), { status: 422, members: { reason: 'quota_exceeded' } }],
    ['the room on the best node', () => addNode('a', 2), { status: 503, members: { reason: 'no_capacity' } }],
    [
      'a host name of two of them',
      async (demands) => void (demands[2] = { ...demandOf(), hostname: demands[0]?.hostname ?? '' }),
      { status: 409, members: { reason: 'name_taken' } },
    ],
  ])('are refused together by %s, and take nothing', async (_, prepare, refused) => {
    await addNode('a', 10)
    const demands = [1, 2, 3].map(() => demandOf())
    await prepare(demands)
    const problem = await refusal(claimTogether(demands))
    expect(problem).toMatchObject(refused)
    expect(problem?.members.resource, 'the other one is not made either').toBeUndefined()
    expect([await usedQuota('servers'), await usedQuota('storages'), await usedOnNodes()]).toEqual([0, 0, [0]])
  })

  test('differ in id and host name only, and members of a group are never alike', () => {
    const [one, other] = [demandOf(), demandOf()]
    expect(batchKeyOf(one)).toBe(batchKeyOf(other))
    for (const change of [
      { cores: 2 },
      { zone: 'elsewhere' },
      { publicIpv4: true },
      { cpuPool: 'fast' },
      { accountId: newUuid(systemRandom) },
    ])
      expect(batchKeyOf({ ...other, ...change })).not.toBe(batchKeyOf(one))
    expect(batchKeyOf({ ...one, serverGroupId: 'g' })).not.toBe(batchKeyOf({ ...other, serverGroupId: 'g' }))
  })
})

describe('a node', () => {
  test('that has a guest is not forgotten before the guest is deleted', async () => {
    await addNode('a', 4)
    const demand = demandOf()
    await claim(demand)
    expect(await forgetNode(database.db, `${zone}-a`)).toBe(false)
    expect(await refusal(claim(demandOf()))).toMatchObject({ members: { reason: 'no_capacity' } })
    await release(demand)
    expect(await forgetNode(database.db, `${zone}-a`)).toBe(true)
  })

  test('that is mirrored again keeps what is claimed on it', async () => {
    await addNode('a', 4)
    await claim(demandOf({ cores: 3 }))
    await addNode('a', 2)
    expect(await listCandidates(database.db, zone)).toMatchObject([
      { total: { cores: 2 }, used: { ...NOTHING_USED, cores: 3, memoryMebibytes: 512, storageGibibytes: 1 } },
    ])
  })
})

test('reading the claims of a server touches only its own rows, also before PostgreSQL has statistics', async () => {
  await addNode('n1', 1_000)
  await setQuotas(database.db, 1_000_000, { accountId })
  const demands = Array.from({ length: 300 }, () => demandOf())
  await database.db.transaction().execute((tx) => claimServers(tx, demands, { now, random: systemRandom }))
  const touched = await database.db.transaction().execute(async (tx) => {
    const rows = () =>
      sql<{ readonly count: number }>`select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as count
        from pg_stat_xact_user_tables where relname in ('placement', 'address_claim')`
        .execute(tx)
        .then((answer) => answer.rows[0]?.count ?? 0)
    const before = await rows()
    expect((await findServersClaims(tx, demands.slice(0, 8))).every((claims) => claims !== undefined)).toBe(true)
    return (await rows()) - before
  })
  expect(touched).toBeLessThanOrEqual(3 * 8) // a host name, a MAC address and the room of each
})
