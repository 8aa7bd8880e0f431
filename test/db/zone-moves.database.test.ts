/** What a server holds in PostgreSQL while it goes to another zone: host name, room and addresses of both until it
 *  lives in exactly one. */
import { beforeEach, describe, expect, test } from 'vitest'
import { releaseTarget, reserveTarget, cutOverPlacement, type TargetRequest } from '../../db/server/moves.ts'
import { hasFreeAddress, mirrorPool } from '../../db/public-pool/index.ts'
import { addServerGroup } from '../../db/server-group/index.ts'
import { claimServer, findServerClaims, releaseServer, type ServerDemand } from '../../db/server/claims.ts'
import { Problem } from '../../domain/problem.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { createAccount } from '../accounts.ts'
import { useDatabase } from '../database.ts'
import { openZone } from './zones.ts'

const database = useDatabase()
const now = new Date('2026-01-01T00:00:00Z')
const ROOM = { cores: 2, memoryMebibytes: 512, storageGibibytes: 4 }
const OPERATION = 'op-1'

let accountId: string
let zones: readonly [here: string, there: string]
let tests = 0

beforeEach(async () => {
  tests += 1
  zones = [`here-${tests}`, `there-${tests}`]
  accountId = await createAccount(database.db)
  for (const [index, zone] of zones.entries()) {
    await openZone(database.db, zone, { cores: 8, memoryMebibytes: 4_096, storageGibibytes: 100 })
    // Room for five addresses and two prefixes.
    await transaction((tx) =>
      mirrorPool(tx, {
        id: `${zone}-v4`,
        zone,
        family: 'ipv4',
        cidr: `198.${18 + index}.${tests}.0/29`,
        use: 'server_ipv4',
        state: 'active',
      }),
    )
    await transaction((tx) =>
      mirrorPool(tx, {
        id: `${zone}-v6`,
        zone,
        family: 'ipv6',
        cidr: `2001:db8:${index}${tests.toString(16).padStart(2, '0')}::/63`,
        use: 'server_ipv6_prefix',
        state: 'active',
      }),
    )
  }
})

const transaction: ReturnType<typeof database.db.transaction>['execute'] = (work) =>
  database.db.transaction().execute(work)
const demandOf = (zone: string, changes: Partial<ServerDemand> = {}): ServerDemand => {
  const serverId = newUuid(systemRandom)
  return { accountId, serverId, hostname: `host-${serverId}`, zone, publicIpv4: true, ...ROOM, ...changes }
}
const claim = (demand: ServerDemand) => transaction((tx) => claimServer(tx, demand, { now, random: systemRandom }))
const idOf = ({ serverId }: ServerDemand) => ({ accountId, serverId, operationId: OPERATION })
const reserve = (demand: ServerDemand, wish: Partial<TargetRequest> = {}) =>
  transaction((tx) => reserveTarget(tx, { ...idOf(demand), zone: zones[1], ...wish }, now))
const claimsOf = (demand: ServerDemand) => findServerClaims(database.db, demand)
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => (error instanceof Problem ? error : Promise.reject(error)),
  )
const coresUsed = async (zone: string) =>
  (
    await database.db
      .selectFrom('node_capacity')
      .select('cores_used')
      .where('zone', '=', zone)
      .executeTakeFirstOrThrow()
  ).cores_used
const namesOf = async (zone: string) =>
  (
    await database.db
      .selectFrom('address_claim')
      .select('value')
      .where('kind', '=', 'hostname')
      .where('scope', '=', `${accountId}/${zone}`)
      .execute()
  ).map(({ value }) => value)
const heldIn = async (zone: string) =>
  (
    await database.db
      .selectFrom('public_address')
      .innerJoin('public_pool', 'public_pool.id', 'public_address.pool_id')
      .select('public_address.holder')
      .where('zone', '=', zone)
      .where('public_address.holder', 'is not', null)
      .execute()
  ).length

async function moved(): Promise<ServerDemand> {
  const demand = demandOf(zones[0])
  await claim(demand)
  await reserve(demand)
  return demand
}

describe('a server on its way to another zone', () => {
  test('claims everything twice, and reports its own zone only', async () => {
    const demand = demandOf(zones[0])
    const before = await claim(demand)
    expect(await reserve(demand)).toEqual({ operationId: OPERATION, zone: zones[1], node: `${zones[1]}-node` })
    expect(await reserve(demand)).toEqual({ operationId: OPERATION, zone: zones[1], node: `${zones[1]}-node` })
    expect(await claimsOf(demand)).toEqual({
      ...before,
      target: { operationId: OPERATION, zone: zones[1], node: `${zones[1]}-node` },
    })
    for (const zone of zones)
      expect([await coresUsed(zone), await namesOf(zone), await heldIn(zone)]).toEqual([
        ROOM.cores,
        [demand.hostname],
        2,
      ])
  })

  test(
    'has the addresses of the other when it lives there, keeps its ' + 'MAC address, and nothing in the one before',
    async () => {
      const demand = await moved()
      const before = await claimsOf(demand)
      for (const _again of [1, 2]) await transaction((tx) => cutOverPlacement(tx, idOf(demand)))
      const after = await claimsOf(demand)
      expect(after).toMatchObject({
        macAddress: before?.macAddress,
        placement: { zone: zones[1], node: `${zones[1]}-node`, ...ROOM },
      })
      expect(after?.addresses.map(({ address, isCurrent }) => [address, isCurrent])).toEqual([
        [`198.19.${tests}.2`, true],
        [`2001:db8:1${tests.toString(16).padStart(2, '0')}::1`, true],
      ])
      expect(after?.target).toBeUndefined()
      expect([await coresUsed(zones[0]), await namesOf(zones[0]), await heldIn(zones[0])]).toEqual([0, [], 0])
      expect([await coresUsed(zones[1]), await namesOf(zones[1]), await heldIn(zones[1])]).toEqual([
        ROOM.cores,
        [demand.hostname],
        2,
      ])
    },
  )

  test('that stays has what it had, and nothing in the other', async () => {
    const demand = demandOf(zones[0])
    const before = await claim(demand)
    await reserve(demand)
    for (const _again of [1, 2]) await transaction((tx) => releaseTarget(tx, idOf(demand)))
    expect(await claimsOf(demand)).toEqual(before)
    expect([await coresUsed(zones[1]), await namesOf(zones[1]), await heldIn(zones[1])]).toEqual([0, [], 0])
  })

  test('that is deleted leaves nothing in either', async () => {
    const demand = await moved()
    await transaction((tx) => releaseServer(tx, demand))
    for (const zone of zones)
      expect([await coresUsed(zone), await namesOf(zone), await heldIn(zone)]).toEqual([0, [], 0])
  })

  test('goes back, and has an address of its first zone again', async () => {
    const demand = await moved()
    await transaction((tx) => cutOverPlacement(tx, idOf(demand)))
    await transaction((tx) => reserveTarget(tx, { ...idOf(demand), operationId: 'op-2', zone: zones[0] }, now))
    await transaction((tx) => cutOverPlacement(tx, { ...idOf(demand), operationId: 'op-2' }))
    expect(await claimsOf(demand)).toMatchObject({
      placement: { zone: zones[0] },
      addresses: [{ address: `198.18.${tests}.3` }, { use: 'server_ipv6_prefix', isCurrent: true }],
    })
    expect([await namesOf(zones[1]), await heldIn(zones[1])]).toEqual([[], 0])
  })
})

describe('is refused, and holds nothing there', () => {
  const nothingThere = async () => expect([await coresUsed(zones[1]), await heldIn(zones[1])])

  test('a server whose name is taken there', async () => {
    const demand = demandOf(zones[0])
    await claim(demand)
    await claim(demandOf(zones[1], { hostname: demand.hostname, publicIpv4: false }))
    expect(await refusal(reserve(demand))).toMatchObject({ status: 409, members: { reason: 'name_taken' } })
    ;(await nothingThere()).toEqual([ROOM.cores, 1])
  })

  test('one for whom no address is left', async () => {
    for (let count = 0; count < 2; count++) await claim(demandOf(zones[1], { publicIpv4: false, cores: 0 }))
    expect(await hasFreeAddress(database.db, zones[1], 'server_ipv6_prefix')).toBe(false)
    const demand = demandOf(zones[0])
    await claim(demand)
    expect(await refusal(reserve(demand))).toMatchObject({ status: 503, members: { reason: 'no_free_address' } })
    expect([await namesOf(zones[1]), await coresUsed(zones[1])]).toEqual([
      expect.not.arrayContaining([demand.hostname]),
      0,
    ])
  })

  test('one that lives nowhere', async () => {
    expect(await refusal(reserve(demandOf(zones[0])))).toMatchObject({
      status: 409,
      members: { reason: 'state_not_allowed' },
    })
    ;(await nothingThere()).toEqual([0, 0])
  })

  test('one that no node there has room for', async () => {
    await claim(demandOf(zones[1], { cores: 7, publicIpv4: false }))
    const demand = demandOf(zones[0])
    await claim(demand)
    expect(await refusal(reserve(demand))).toMatchObject({ status: 503, members: { reason: 'no_capacity' } })
    ;(await nothingThere()).toEqual([7, 1])
  })

  test('one of a group for servers of the same zone', async () => {
    const [groupId, [zone]] = [newUuid(systemRandom), zones]
    await transaction((tx) =>
      addServerGroup(tx, accountId, {
        id: groupId,
        name: 'web',
        zone,
        region: 'eu',
        spread: 'host',
        isStrict: false,
        generation: 1,
        createdAt: now,
      }),
    )
    const demand = demandOf(zone, { serverGroupId: groupId, region: 'eu' })
    await claim(demand)
    expect(await refusal(reserve(demand))).toMatchObject({
      status: 400,
      members: { errors: [{ field: 'serverGroupId' }] },
    })
    ;(await nothingThere()).toEqual([0, 0])
  })
})
