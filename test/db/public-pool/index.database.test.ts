import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { mirrorNode } from '../../../db/placement/nodes.ts'
import {
  countAllocated,
  forgetPool,
  hasFreeAddress,
  listAddresses,
  mirrorPool,
  type AddressPool,
} from '../../../db/public-pool/index.ts'
import {
  claimServer,
  findServerClaims,
  releaseServer,
  renumberServer,
  type ServerDemand,
} from '../../../db/server/claims.ts'
import { Problem } from '../../../domain/problem.ts'
import { PREFIXES_OF_SERVER_MAXIMUM, prefixOf } from '../../../domain/public-pool/rules.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { createAccount, setQuotas } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { eventually } from '../../eventually.ts'
import { lockWaits } from '../../lock-waits.ts'

const database = useDatabase()
const now = new Date('2026-01-01T00:00:00Z')

let accountId: string
let zone: string
let tests = 0
/** A part of the networks that no other test uses. */
const ipv4Of = (test: number) => `198.18.${test}.0`
const ipv6Of = (test: number) => `2001:db8:${test.toString(16)}00::`

beforeEach(async () => {
  accountId = await createAccount(database.db)
  zone = `zone-${++tests}`
  await mirrorNode(database.db, {
    node: `${zone}-a`,
    zone,
    rack: 'rack-1',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 100_000, memoryMebibytes: 100_000_000, storageGibibytes: 1_000_000 },
  })
  await setQuotas(database.db, 1_000_000, { accountId })
})

const mirror = (pool: AddressPool) => database.db.transaction().execute((tx) => mirrorPool(tx, pool))
const ipv4 = (length: number, changes: Partial<AddressPool> = {}): AddressPool => ({
  id: `${zone}-v4`,
  zone,
  family: 'ipv4',
  cidr: `${ipv4Of(tests)}/${length}`,
  use: 'server_ipv4',
  state: 'active',
  ...changes,
})
const ipv6 = (length: number, changes: Partial<AddressPool> = {}): AddressPool => ({
  id: `${zone}-v6`,
  zone,
  family: 'ipv6',
  cidr: `${ipv6Of(tests)}/${length}`,
  use: 'server_ipv6_prefix',
  state: 'active',
  ...changes,
})
const demandOf = (changes: Partial<ServerDemand> = {}): ServerDemand => {
  const serverId = newUuid(systemRandom)
  return {
    accountId,
    serverId,
    hostname: `host-${serverId}`,
    zone,
    cores: 1,
    memoryMebibytes: 1,
    storageGibibytes: 1,
    publicIpv4: true,
    ...changes,
  }
}
const claim = (demand: ServerDemand) =>
  database.db.transaction().execute((tx) => claimServer(tx, demand, { now, random: systemRandom }))
const release = (demand: ServerDemand) => database.db.transaction().execute((tx) => releaseServer(tx, demand))
const renumber = (demand: ServerDemand) => database.db.transaction().execute((tx) => renumberServer(tx, demand))
const forget = (id: string) => database.db.transaction().execute((tx) => forgetPool(tx, id))
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => (error instanceof Problem ? error : Promise.reject(error)),
  )
const held = async ({ serverId }: ServerDemand) =>
  (await listAddresses(database.db, { accountId, holder: `server/${serverId}` })).map(({ address, isCurrent }) =>
    isCurrent ? address : `(${address})`,
  )
const allocated = async (pool: AddressPool) => (await countAllocated(database.db, [pool.id])).get(pool.id) ?? 0

describe('a server', () => {
  test('in a zone without pools has no address', async () => {
    expect((await claim(demandOf({ publicIpv4: false }))).addresses).toEqual([])
  })

  test('has a /64 and, when it asks, an IPv4 address, and gives both back', async () => {
    const pools = [ipv4(24), ipv6(40)] as const
    for (const pool of pools) await mirror(pool)
    const demand = demandOf()
    const claims = await claim(demand)
    expect(claims.addresses).toEqual([
      {
        use: 'server_ipv4',
        address: `198.18.${tests}.2`,
        prefix: 24,
        gateway: `198.18.${tests}.1`,
        isCurrent: true,
        isDraining: false,
      },
      {
        use: 'server_ipv6_prefix',
        address: `${ipv6Of(tests)}1`,
        prefix: 64,
        gateway: 'fe80::1',
        isCurrent: true,
        isDraining: false,
      },
    ])
    expect(await findServerClaims(database.db, demand)).toEqual(claims)
    expect(await claim(demand)).toEqual(claims)
    expect((await claim(demandOf({ publicIpv4: false }))).addresses.map(({ use }) => use)).toEqual([
      'server_ipv6_prefix',
    ])
    expect([await allocated(pools[0]), await allocated(pools[1])]).toEqual([1, 2])
    await release(demand)
    await release(demand)
    expect([await held(demand), await allocated(pools[0]), await allocated(pools[1])]).toEqual([[], 0, 1])
  })

  test('is refused where nothing is free, and leaves nothing', async () => {
    expect(await refusal(claim(demandOf()))).toMatchObject({ status: 503, members: { reason: 'no_free_address' } })
    await mirror(ipv4(30))
    await claim(demandOf())
    const late = demandOf()
    expect(await refusal(claim(late))).toMatchObject({ status: 503, members: { reason: 'no_free_address' } })
    expect([await findServerClaims(database.db, late), await hasFreeAddress(database.db, zone, 'server_ipv4')]).toEqual(
      [undefined, false],
    )
  })

  test('gets nothing from a draining pool', async () => {
    await mirror(ipv4(24))
    await mirror(ipv4(24, { state: 'draining' }))
    expect(await refusal(claim(demandOf()))).toMatchObject({ members: { reason: 'no_free_address' } })
    await mirror(ipv4(24, { id: `${zone}-b`, cidr: `198.19.${tests}.0/24` }))
    expect(await held(demandOf())).toEqual([])
    expect((await claim(demandOf())).addresses[0]?.address).toBe(`198.19.${tests}.2`)
  })
})

describe('an address that was given back', () => {
  test('rests until all others were handed out, the longest first', async () => {
    await mirror(ipv4(29)) // five addresses, .2 to .6
    const [first, second, third] = [demandOf(), demandOf(), demandOf()]
    for (const demand of [first, second, third]) await claim(demand)
    await release(second)
    await release(first)
    const next = []
    for (let count = 0; count < 4; count++) next.push((await claim(demandOf())).addresses[0]?.address)
    expect(next).toEqual([5, 6, 3, 2].map((host) => `198.18.${tests}.${host}`))
    expect(await refusal(claim(demandOf()))).toMatchObject({ members: { reason: 'no_free_address' } })
  })
})

describe('renumbering', () => {
  test('gives another /64, and the one before leads on until the pool or the server goes', async () => {
    const [old, fresh] = [
      ipv6(63),
      ipv6(63, { id: `${zone}-new`, cidr: `2001:db8:f${tests.toString(16).padStart(3, '0')}::/63` }),
    ]
    await mirror(old)
    const demand = demandOf({ publicIpv4: false })
    await claim(demand)
    await renumber(demand)
    expect(await held(demand)).toEqual([`${ipv6Of(tests)}1`]) // nothing to do while the pool is active
    await mirror({ ...old, state: 'draining' })
    expect(await refusal(renumber(demand))).toMatchObject({ members: { reason: 'no_free_address' } })
    await mirror(fresh)
    await renumber(demand)
    await renumber(demand)
    expect(await held(demand)).toEqual([fresh.cidr.replace('/63', '1'), `(${ipv6Of(tests)}1)`])
    expect([await allocated(old), await allocated(fresh)]).toEqual([0, 1])
    // Nobody else gets it meanwhile, not even when the old pool is active again and the only one with room.
    await mirror({ ...old, state: 'active' })
    const others = [demandOf({ publicIpv4: false }), demandOf({ publicIpv4: false })]
    for (const other of others) await claim(other)
    expect(await refusal(claim(demandOf({ publicIpv4: false })))).toMatchObject({
      members: { reason: 'no_free_address' },
    })
    await mirror({ ...old, state: 'draining' })
    for (const other of others) await release(other)
    expect(await forget(old.id)).toBe(true)
    expect(await held(demand)).toEqual([fresh.cidr.replace('/63', '1')])
  })

  test('ends when as many point to the server as may', async () => {
    const pools = ['a', 'b'].map((name, number) =>
      ipv6(56, { id: `${zone}-${name}`, cidr: `2001:db8:${tests.toString(16)}0${number}::/56` }),
    )
    for (const pool of pools) await mirror(pool)
    const demand = demandOf({ publicIpv4: false })
    await claim(demand)
    const afterDraining = async (number: number) => {
      for (const [index, pool] of pools.entries())
        await mirror({ ...pool, state: index === number % 2 ? 'draining' : 'active' })
      return refusal(renumber(demand))
    }
    for (let count = 1; count < PREFIXES_OF_SERVER_MAXIMUM; count++)
      expect(await afterDraining(count + 1)).toBeUndefined()
    expect(await afterDraining(PREFIXES_OF_SERVER_MAXIMUM + 1)).toMatchObject({
      status: 409,
      members: { reason: 'state_not_allowed' },
    })
    expect(await held(demand)).toHaveLength(PREFIXES_OF_SERVER_MAXIMUM)
  })
})

describe('a pool', () => {
  test('that overlaps another is refused and named', async () => {
    await mirror(ipv4(24))
    expect(await refusal(mirror(ipv4(25, { id: `${zone}-b` })))).toMatchObject({
      status: 409,
      members: { reason: 'in_use', resource: { type: 'public_pool', id: `${zone}-v4` } },
    })
  })

  test('of two that overlap and come at once, one is refused', async () => {
    const answers = await Promise.all(
      [24, 25, 26, 27, 28].map((length) => refusal(mirror(ipv4(length, { id: `${zone}-${length}` })))),
    )
    expect(answers.filter((problem) => problem === undefined)).toHaveLength(1)
    expect(answers.filter((problem) => problem?.status === 409)).toHaveLength(4)
  })

  test('is not forgotten while somebody has an address of it', async () => {
    const pool = ipv6(48)
    await mirror(pool)
    const demand = demandOf({ publicIpv4: false })
    await claim(demand)
    expect(await forget(pool.id)).toBe(false)
    await release(demand)
    expect([await forget(pool.id), await forget(pool.id)]).toEqual([true, true])
  })
})

describe('a hundred at once', () => {
  test('never get one address twice, and all that there are', async () => {
    await mirror(ipv4(28)) // 13
    await mirror(ipv4(26, { id: `${zone}-b`, cidr: `198.19.${tests}.0/26` })) // 61
    await mirror(ipv6(40))
    const demands = Array.from({ length: 100 }, () => demandOf())
    const refusals = await Promise.all(demands.map((demand) => refusal(claim(demand))))
    expect(new Set(refusals.map((problem) => problem?.members.reason))).toEqual(new Set([undefined, 'no_free_address']))
    const winners = demands.filter((_, index) => refusals[index] === undefined)
    const addresses = (await Promise.all(winners.map(held))).flat()
    expect([winners.length, new Set(addresses).size]).toEqual([74, 148])
    expect(new Set(addresses.filter((address) => address.includes(':')).map(prefixOf)).size).toBe(74)
    await Promise.all([...winners, ...winners].map(release))
    const again = demands.map((demand) => demandOf({ publicIpv4: demand.publicIpv4 }))
    const results = await Promise.all(again.map((demand) => refusal(claim(demand))))
    const holders = (await Promise.all(again.filter((_, index) => results[index] === undefined).map(held))).flat()
    expect(new Set(holders).size).toBe(holders.length)
  })

  test('renumberings of one server at once give it one prefix', async () => {
    await mirror(ipv6(60))
    const demand = demandOf({ publicIpv4: false })
    await claim(demand)
    await mirror(ipv6(60, { state: 'draining' }))
    await mirror(ipv6(60, { id: `${zone}-next`, cidr: '2001:db8:fff0::/60' }))
    let second: Promise<unknown> | undefined
    await database.db.transaction().execute(async (tx) => {
      await renumberServer(tx, demand)
      second = renumber(demand)
      await eventually('the second waits for the first', async () => (await lockWaits(database.db)) === 1)
    })
    await second
    expect((await held(demand)).length).toBe(2)
  })

  test('claiming, renumbering and giving back in any order leave every address with one holder at most', async () => {
    await mirror(ipv4(27))
    await mirror(ipv6(60))
    const steps = fc.array(fc.tuple(fc.constantFrom('claim', 'release', 'renumber', 'drain', 'activate'), fc.nat(11)), {
      maxLength: 40,
    })
    const demands = Array.from({ length: 12 }, () => demandOf())
    await fc.assert(
      fc.asyncProperty(steps, async (story) => {
        await Promise.all(
          story.map(async ([step, number]) => {
            const demand = demands[number] as ServerDemand
            if (step === 'claim') await refusal(claim(demand))
            else if (step === 'release') await release(demand)
            else if (step === 'renumber') await refusal(renumber(demand))
            else await mirror(ipv6(60, { state: step === 'drain' ? 'draining' : 'active' }))
          }),
        )
        const rows = await database.db
          .selectFrom('public_address')
          .selectAll()
          .where('pool_id', 'like', `${zone}-%`)
          .execute()
        expect(new Set(rows.map(({ address }) => address)).size).toBe(rows.length)
        const claims = await Promise.all(demands.map((demand) => findServerClaims(database.db, demand)))
        for (const claim of claims)
          if (claim !== undefined)
            expect(claim.addresses.filter(({ isCurrent }) => isCurrent).map(({ use }) => use)).toEqual([
              'server_ipv4',
              'server_ipv6_prefix',
            ])
        expect(rows.filter(({ holder }) => holder !== null).length).toBe(
          claims.flatMap((claim) => claim?.addresses ?? []).length,
        )
      }),
      { numRuns: 30 },
    )
  })
})

test('of 2^24 prefixes the last is handed out, and no more', async () => {
  await mirror(ipv6(40))
  // As if all but one of 2^24 prefixes had been out.
  await database.db
    .updateTable('public_pool')
    .set({ next_index: 2 ** 24 - 1 })
    .where('id', '=', `${zone}-v6`)
    .execute()
  expect((await claim(demandOf({ publicIpv4: false }))).addresses[0]?.address).toBe(
    `2001:db8:${tests.toString(16)}ff:ffff::1`,
  )
  expect(await refusal(claim(demandOf({ publicIpv4: false })))).toMatchObject({
    members: { reason: 'no_free_address' },
  })
})
