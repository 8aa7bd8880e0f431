/** Servers in private networks, as PostgreSQL keeps them: every address at one port. */
import { beforeEach, describe, expect, test } from 'vitest'
import { claimNetwork, endNetwork, releaseNetwork } from '../../../db/network/index.ts'
import {
  attachInterface,
  attachNewInterface,
  type InterfaceDemand,
  leaveNetwork,
  listInterfaces,
  releaseInterface,
  withdrawInterface,
} from '../../../db/network-interface/index.ts'
import { claimServer, findServerClaims, releaseServer } from '../../../db/server/claims.ts'
import { reserveTarget } from '../../../db/server/moves.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { openZone, refusalOf, ROOM } from '../zones.ts'

const database = useDatabase()
const by = { now: new Date('2026-01-01T00:00:00Z'), random: systemRandom }

let accountId: string
let zones: readonly [here: string, there: string]
let network: InterfaceDemand
let tests = 0

const transaction: ReturnType<typeof database.db.transaction>['execute'] = (work) =>
  database.db.transaction().execute(work)

beforeEach(async () => {
  tests += 1
  zones = [`port-here-${tests}`, `port-there-${tests}`]
  accountId = await createAccount(database.db)
  for (const zone of zones) await openZone(database.db, zone)
  network = await makeNetwork('back')
})

async function makeNetwork(name: string, ipv4Cidr = '10.1.0.0/28', zone = zones[0]): Promise<InterfaceDemand> {
  const networkId = newUuid(systemRandom)
  await transaction((tx) => claimNetwork(tx, { accountId, networkId, zone, name, ipv4Cidr }, systemRandom))
  return { networkId, networkUid: `uid-${networkId}` }
}
async function makeServer(networks: readonly InterfaceDemand[] = []): Promise<string> {
  const serverId = newUuid(systemRandom)
  const demand = { accountId, serverId, hostname: `host-${serverId}`, zone: zones[0], networks, ...ROOM }
  await transaction((tx) => claimServer(tx, demand, by))
  return serverId
}
const attach = (serverId: string, demand: InterfaceDemand = network) =>
  transaction((tx) => attachInterface(tx, { accountId, serverId, ...demand }, by))
const interfacesOf = async (serverId: string) =>
  (await findServerClaims(database.db, { accountId, serverId }))?.interfaces ?? []

test('a server that is made in a network has an interface there, with its addresses and its MAC', async () => {
  const [one, other] = [await makeServer([network]), await makeServer([network])]
  const [first, second] = [await interfacesOf(one), await interfacesOf(other)]
  expect(first).toMatchObject([{ networkId: network.networkId, slot: 1, ipv4Address: '10.1.0.2', isLeaving: false }])
  expect(second).toMatchObject([{ slot: 1, ipv4Address: '10.1.0.3' }])
  expect(first[0]?.ipv6Address.endsWith('::2')).toBe(true)
  expect(first[0]?.macAddress).not.toBe(second[0]?.macAddress)
  expect(await listInterfaces(database.db, { accountId, serverId: one })).toEqual(first)
})

test('an interface is attached once', async () => {
  const server = await makeServer()
  const first = await attach(server)
  expect(await attach(server)).toEqual(first)
  expect(
    await refusalOf(transaction((tx) => attachNewInterface(tx, { accountId, serverId: server, ...network }, by))),
  ).toBe('409 in_use')
})

test('servers that come at the same time have different addresses', async () => {
  const servers = await Promise.all(Array.from({ length: 6 }, () => makeServer()))
  const made = await Promise.all(servers.map((server) => attach(server)))
  expect(new Set(made.map(({ ipv4Address }) => ipv4Address)).size).toBe(6)
  expect(new Set(made.map(({ ipv6Address }) => ipv6Address)).size).toBe(6)
})

describe('is refused', () => {
  test('an address that another has, or that no host has', async () => {
    const [one, other] = [await makeServer(), await makeServer()]
    expect(await attach(one, { ...network, ipv4Address: '10.1.0.9' })).toMatchObject({ ipv4Address: '10.1.0.9' })
    expect(await refusalOf(attach(other, { ...network, ipv4Address: '10.1.0.9' }))).toBe('409 in_use')
    expect(await refusalOf(attach(other, { ...network, ipv4Address: '10.1.0.1' }))).toBe('400 ipv4Address')
    expect(await refusalOf(attach(other, { ...network, ipv6Address: 'fd00::5' }))).toBe('400 ipv6Address')
  })

  test('a network that is not there, is going, or is in another zone', async () => {
    const server = await makeServer()
    expect(await refusalOf(attach(server, { networkId: newUuid(systemRandom), networkUid: 'x' }))).toBe('404')
    const there = await makeNetwork('there', '10.2.0.0/24', zones[1])
    expect(await refusalOf(attach(server, there))).toBe('400 networkId')
    const { networkId } = await makeNetwork('going', '10.3.0.0/24')
    await transaction((tx) => endNetwork(tx, { accountId, networkId }))
    expect(await refusalOf(attach(server, { networkId, networkUid: 'x' }))).toBe('404')
  })

  test('a ninth interface, the public one counted', async () => {
    const server = await makeServer()
    for (let index = 1; index <= 7; index++) {
      const made = await attach(server, await makeNetwork(`n${index}`, `10.9.${index}.0/24`))
      expect(made.slot).toBe(index)
    }
    expect(await refusalOf(attach(server))).toBe('422 quota_exceeded')
  })

  test('a server in a network that is full', async () => {
    const tiny = await makeNetwork('tiny', '10.4.0.0/28')
    for (let index = 0; index < 13; index++) await makeServer([tiny])
    expect(await refusalOf(makeServer([tiny]))).toBe('503 no_free_address')
  })

  test('the end of a network that a server is in', async () => {
    const server = await makeServer([network])
    const { networkId } = network
    expect(await refusalOf(transaction((tx) => endNetwork(tx, { accountId, networkId })))).toBe('409 in_use')
    await transaction((tx) => releaseServer(tx, { accountId, serverId: server }))
    expect(await refusalOf(transaction((tx) => endNetwork(tx, { accountId, networkId })))).toBeUndefined()
    await transaction((tx) => releaseNetwork(tx, { accountId, networkId }))
  })

  test('another zone to a server that is in a network', async () => {
    const server = await makeServer([network])
    const move = { accountId, serverId: server, operationId: 'op-1', zone: zones[1] }
    expect(await refusalOf(transaction((tx) => reserveTarget(tx, move, by.now)))).toBe('409 in_use')
  })
})

describe('leaving a network', () => {
  test('keeps the addresses until the guest has released them', async () => {
    const server = await makeServer([network])
    const of = { accountId, serverId: server, networkId: network.networkId }
    await transaction((tx) => leaveNetwork(tx, of))
    const [leaving] = await interfacesOf(server)
    expect(leaving).toMatchObject({ isLeaving: true, ipv4Address: '10.1.0.2' })
    expect(await attach(await makeServer())).toMatchObject({ ipv4Address: '10.1.0.3' })
    expect(await refusalOf(attach(server))).toBe('409 state_not_allowed')
    await transaction((tx) => releaseInterface(tx, { accountId, id: leaving?.id ?? '' }))
    expect(await interfacesOf(server)).toEqual([])
    expect(await attach(server)).toMatchObject({ ipv4Address: '10.1.0.2' })
  })

  test('waits for floating IPs to go elsewhere', async () => {
    const server = await makeServer([network])
    const of = { accountId, serverId: server, networkId: network.networkId }
    const floating = { account_id: accountId, id: 'ip', zone: zones[0], server_id: server, network_id: of.networkId }
    await database.db.insertInto('floating_ip').values(floating).execute()
    expect(await refusalOf(transaction((tx) => leaveNetwork(tx, of)))).toBe('409 in_use')
    await database.db.deleteFrom('floating_ip').where('account_id', '=', accountId).execute()
    expect(await refusalOf(transaction((tx) => leaveNetwork(tx, of)))).toBeUndefined()
  })

  test('gives everything back, also the MAC address', async () => {
    const server = await makeServer([network])
    const claimed = async () =>
      (
        await database.db
          .selectFrom('address_claim')
          .select('value')
          .where('account_id', '=', accountId)
          .where('kind', '=', 'mac')
          .execute()
      ).length
    expect(await claimed()).toBe(2)
    const withdraw = (isDesired: boolean) =>
      transaction((tx) =>
        withdrawInterface(tx, { accountId, serverId: server, networkId: network.networkId }, isDesired),
      )
    // It was put there by its spec meanwhile.
    await withdraw(true)
    expect(await claimed()).toBe(2)
    await withdraw(false)
    expect(await claimed()).toBe(1)
    await attach(server)
    await transaction((tx) => releaseServer(tx, { accountId, serverId: server }))
    expect(await claimed()).toBe(0)
  })
})
