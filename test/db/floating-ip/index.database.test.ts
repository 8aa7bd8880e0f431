/** Floating IPs as PostgreSQL keeps them: one address, one server. */
import { beforeEach, describe, expect, test } from 'vitest'
import {
  assignFloatingIp,
  type Assignment,
  claimFloatingIp,
  findFloatingIp,
  findForwarding,
  releaseFloatingIp,
} from '../../../db/floating-ip/index.ts'
import { claimNetwork } from '../../../db/network/index.ts'
import { mirrorPool } from '../../../db/public-pool/index.ts'
import { claimRouter } from '../../../db/router/index.ts'
import { claimServer, releaseServer } from '../../../db/server/claims.ts'
import { reserveTarget } from '../../../db/server/moves.ts'
import type { PoolUse } from '../../../domain/public-pool/rules.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { createAccount, setQuotas } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { openZone, refusalOf, ROOM } from '../zones.ts'

const database = useDatabase()
const by = { now: new Date('2026-01-01T00:00:00Z'), random: systemRandom }

let accountId: string
let zones: readonly [here: string, there: string]
let networkId: string
let tests = 0

const transaction: ReturnType<typeof database.db.transaction>['execute'] = (work) =>
  database.db.transaction().execute(work)

beforeEach(async () => {
  tests += 1
  zones = [`fip-here-${tests}`, `fip-there-${tests}`]
  accountId = await createAccount(database.db)
  for (const [index, zone] of zones.entries()) {
    await openZone(database.db, zone)
    await makePool(zone, 'server_ipv4', `198.${18 + index}.${tests}.0/29`)
    await makePool(zone, 'floating_ipv4', `203.${10 + index}.${tests}.0/29`)
  }
  networkId = newUuid(systemRandom)
  const network = { accountId, networkId, zone: zones[0], name: 'back', ipv4Cidr: '10.1.0.0/24' }
  await transaction((tx) => claimNetwork(tx, network, systemRandom))
})

const makePool = (zone: string, use: PoolUse, cidr: string) =>
  transaction((tx) => mirrorPool(tx, { id: `${zone}-${use}`, zone, family: 'ipv4', cidr, use, state: 'active' }))
async function makeServer({ publicIpv4 = true, isIn = false, zone = zones[0] } = {}): Promise<string> {
  const serverId = newUuid(systemRandom)
  const networks = isIn ? [{ networkId, networkUid: 'uid' }] : []
  const demand = { accountId, serverId, hostname: `host-${serverId}`, zone, publicIpv4, networks, ...ROOM }
  await transaction((tx) => claimServer(tx, demand, by))
  return serverId
}
const route = (natEnabled: boolean, networkIds: readonly string[] = [networkId], routerId = 'router') =>
  transaction((tx) =>
    claimRouter(tx, { accountId, routerId, zone: zones[0], name: routerId, natEnabled, networkIds: [...networkIds] }),
  )
const allocate = (id: string, assignment?: Assignment) =>
  transaction((tx) => claimFloatingIp(tx, { accountId, floatingIpId: id, zone: zones[0], assignment }))
const assign = (id: string, assignment: Assignment | undefined) =>
  transaction((tx) => assignFloatingIp(tx, { accountId, floatingIpId: id, assignment }))
const find = (id: string) => findFloatingIp(database.db, { accountId, floatingIpId: id })
const forwarding = async (id: string) => {
  const claim = await find(id)
  return claim && findForwarding(database.db, { accountId, claim })
}
const atPublic = (serverId: string) => ({ serverId, target: 'public' })
const atPrivate = (serverId: string) => ({ serverId, target: `private:${networkId}` })

test('an address is allocated once, and given back', async () => {
  const first = await allocate('ip')
  expect(first).toMatchObject({ zone: zones[0], serverId: undefined, networkId: undefined })
  expect(first.address).toMatch(/^203\./)
  expect(await allocate('ip')).toEqual(first)
  expect(await forwarding('ip')).toBeUndefined()
  await transaction((tx) => releaseFloatingIp(tx, { accountId, floatingIpId: 'ip' }))
  await transaction((tx) => releaseFloatingIp(tx, { accountId, floatingIpId: 'ip' }))
  expect(await find('ip')).toBeUndefined()
})

test('no two have one address, also when they come at once', async () => {
  const made = await Promise.all(['a', 'b', 'c', 'd'].map((id) => allocate(id)))
  expect(new Set(made.map(({ address }) => address)).size).toBe(4)
})

test('a pool and a quota that are spent refuse', async () => {
  for (const id of ['a', 'b', 'c', 'd', 'e']) await allocate(id)
  expect(await refusalOf(allocate('f'))).toBe('503 no_free_address')
  await setQuotas(database.db, 5, { accountId, name: 'floating_ips' })
  expect(await refusalOf(allocate('f'))).toBe('422 quota_exceeded')
})

describe('a public target', () => {
  test('points to the public address of the server, and moves in one step', async () => {
    const [one, other] = [await makeServer(), await makeServer()]
    await allocate('ip', atPublic(one))
    const first = await forwarding('ip')
    expect(first).toMatchObject({ kind: 'public', serverAddress: expect.stringMatching(/^198\./) })
    await assign('ip', atPublic(other))
    expect(await forwarding('ip')).not.toEqual(first)
    expect(await find('ip')).toMatchObject({ serverId: other })
    await assign('ip', undefined)
    expect(await find('ip')).toMatchObject({ serverId: undefined })
  })

  test.each<[string, () => Promise<string> | string, string]>([
    ['a server without a public IPv4 address', () => makeServer({ publicIpv4: false }), '400 target'],
    ['a server of another zone', () => makeServer({ zone: zones[1] }), '400 serverId'],
    ['no server', () => newUuid(systemRandom), '404'],
  ])('is refused for %s, and keeps no address', async (_what, server, reason) => {
    expect(await refusalOf(allocate('ip', atPublic(await server())))).toBe(reason)
    expect(await find('ip')).toBeUndefined()
  })
})

describe('a private target', () => {
  test('points to the interface, through the router that has NAT', async () => {
    const server = await makeServer({ isIn: true })
    await route(true)
    await allocate('ip', atPrivate(server))
    expect(await find('ip')).toMatchObject({ serverId: server, networkId })
    expect(await forwarding('ip')).toMatchObject({
      kind: 'private',
      routerId: 'router',
      routerAddress: expect.stringMatching(/^203\./),
      address: '10.1.0.2',
    })
  })

  test.each<[string, () => Promise<unknown>, { readonly isIn: boolean }]>([
    ['the server is not in the network', () => route(true), { isIn: false }],
    ['the network has no router', () => Promise.resolve(), { isIn: true }],
    ['the router has no NAT', () => route(false), { isIn: true }],
  ])('is refused where %s', async (_what, prepare, where) => {
    await prepare()
    expect(await refusalOf(allocate('ip', atPrivate(await makeServer(where))))).toBe('400 target')
  })

  test('keeps NAT and the network at the router', async () => {
    const server = await makeServer({ isIn: true })
    await route(true)
    await allocate('ip', atPrivate(server))
    expect(await refusalOf(route(false))).toBe('409 in_use')
    expect(await refusalOf(route(true, []))).toBe('409 in_use')
    await assign('ip', undefined)
    expect(await refusalOf(route(false))).toBeUndefined()
  })
})

test('the end of its server unassigns it, and it keeps its address', async () => {
  const server = await makeServer()
  const { address } = await allocate('ip', atPublic(server))
  await transaction((tx) => releaseServer(tx, { accountId, serverId: server }))
  expect(await find('ip')).toEqual({ zone: zones[0], address, serverId: undefined, networkId: undefined })
})

test('its server stays in the zone', async () => {
  const server = await makeServer()
  await allocate('ip', atPublic(server))
  const move = { accountId, serverId: server, operationId: 'op-1', zone: zones[1] }
  expect(await refusalOf(transaction((tx) => reserveTarget(tx, move, by.now)))).toBe('409 in_use')
  await assign('ip', undefined)
  await transaction((tx) => reserveTarget(tx, move, by.now))
  expect(await refusalOf(assign('ip', atPublic(server)))).toBe('409 state_not_allowed')
})
