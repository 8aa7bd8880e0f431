/** What load balancers claim in PostgreSQL: their public addresses. */
import { beforeEach, expect, test } from 'vitest'
import { claimLoadBalancer, findLoadBalancer, releaseLoadBalancer } from '../../../db/load-balancer/index.ts'
import { claimNetwork } from '../../../db/network/index.ts'
import { claimAddresses, listHolderMails, mirrorPool } from '../../../db/public-pool/index.ts'
import { serverHolder } from '../../../db/server/holders.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { createAccount, giveStanding } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { refusalOf } from '../zones.ts'

const database = useDatabase()
let accountId: string
let zone: string
let networkId: string
let tests = 0

const transaction: ReturnType<typeof database.db.transaction>['execute'] = (work) =>
  database.db.transaction().execute(work)
const pool = (family: 'ipv4' | 'ipv6', cidr: string) => {
  const use = family === 'ipv4' ? 'server_ipv4' : 'server_ipv6_prefix'
  return transaction((tx) => mirrorPool(tx, { id: `${zone}-${family}`, zone, family, cidr, use, state: 'active' }))
}

beforeEach(async () => {
  tests += 1
  zone = `balancers-${tests}`
  accountId = await createAccount(database.db)
  networkId = newUuid(systemRandom)
  const claim = { accountId, networkId, zone, name: 'back', ipv4Cidr: '10.1.0.0/24' }
  await transaction((tx) => claimNetwork(tx, claim, systemRandom))
  await pool('ipv4', `198.51.${100 + tests}.0/28`)
})

const idOf = (name: string) => ({ accountId, loadBalancerId: name })
const claim = (name: string, publicIpv4 = true) =>
  transaction((tx) => claimLoadBalancer(tx, { ...idOf(name), zone, name, networkId, publicIpv4 }))
const held = async (name: string) => {
  const { publicIpv4, publicIpv6 } = (await findLoadBalancer(database.db, idOf(name))) ?? {}
  return [publicIpv4?.address, publicIpv6?.address]
}

test('one has a public address of both protocols, no two have the same, and asking again changes nothing', async () => {
  await pool('ipv6', '2001:db8:1::/48')
  await claim('one')
  await claim('one')
  await claim('two')
  expect(await held('one')).toEqual(['198.51.101.2', '2001:db8:1::1'])
  expect(await held('two')).toEqual(['198.51.101.3', '2001:db8:1:1::1'])
})

test('one without public addresses has none of either', async () => {
  await pool('ipv6', '2001:db8:2::/48')
  await claim('inside', false)
  expect(await held('inside')).toEqual([undefined, undefined])
})

test('one in a zone that has no IPv6 addresses has none, also when the zone gets some', async () => {
  await claim('early')
  await pool('ipv6', '2001:db8:3::/48')
  await claim('early')
  expect(await held('early')).toEqual(['198.51.103.2', undefined])
})

test('one whose zone has given all of them away gets nothing, and what one gives back is the next one’s', async () => {
  await pool('ipv6', '2001:db8:4::/64')
  await claim('one')
  expect(await refusalOf(claim('two'))).toBe('503 no_free_address')
  expect(await held('two')).toEqual([undefined, undefined])
  await transaction((tx) => releaseLoadBalancer(tx, idOf('one')))
  await claim('two')
  expect(await held('two')).toEqual(['198.51.104.3', '2001:db8:4::1'])
})

test('nobody is asked to exchange the prefix of a load balancer, which keeps it', async () => {
  await giveStanding(database.db, accountId)
  await pool('ipv6', '2001:db8:5::/48')
  await claim('one')
  expect(await listHolderMails(database.db, `${zone}-ipv6`)).toEqual([])
  await transaction((tx) => claimAddresses(tx, { accountId, holder: serverHolder('s') }, { zone }))
  expect(await listHolderMails(database.db, `${zone}-ipv6`)).toHaveLength(1)
})
