/** Machines that the platform runs for a customer, as PostgreSQL keeps them apart and keeps what they share. */
import { beforeEach, expect, test } from 'vitest'
import { claimNetwork } from '../../db/network/index.ts'
import { attachInterface, type InterfaceDemand, listInterfaces } from '../../db/network-interface/index.ts'
import { mirrorNode } from '../../db/placement/nodes.ts'
import { claimServer } from '../../db/server/claims.ts'
import { claimSharedAddress, findSharedAddress, releaseSharedAddresses } from '../../db/shared-address/index.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { createAccount } from '../accounts.ts'
import { useDatabase } from '../database.ts'
import { openZone, refusalOf, ROOM } from './zones.ts'

const database = useDatabase()
const by = { now: new Date('2026-01-01T00:00:00Z'), random: systemRandom }
const HOLDER = 'load_balancer/web'

let accountId: string
let zone: string
let network: InterfaceDemand
let tests = 0

const transaction: ReturnType<typeof database.db.transaction>['execute'] = (work) =>
  database.db.transaction().execute(work)

beforeEach(async () => {
  tests += 1
  zone = `machines-${tests}`
  accountId = await createAccount(database.db)
  await openZone(database.db, zone)
  const networkId = newUuid(systemRandom)
  const claim = { accountId, networkId, zone, name: 'back', ipv4Cidr: '10.1.0.0/29' }
  await transaction((tx) => claimNetwork(tx, claim, systemRandom))
  network = { networkId, networkUid: `uid-${networkId}` }
})

async function makeServer(managedBy?: string) {
  const serverId = newUuid(systemRandom)
  const demand = { accountId, serverId, hostname: `host-${serverId}`, zone, managedBy, ...ROOM }
  const { placement } = await transaction((tx) => claimServer(tx, demand, by))
  return { serverId, node: placement.node }
}
const share = (holder = HOLDER, chosen: { readonly ipv4Address?: string } = {}) =>
  transaction((tx) => claimSharedAddress(tx, { accountId, networkId: network.networkId, holder, ...chosen }))
const attach = async (chosen: { readonly ipv4Address?: string } = {}) => {
  const { serverId } = await makeServer()
  return transaction((tx) => attachInterface(tx, { accountId, serverId, ...network, ...chosen }, by))
}

test('machines of one owner are on different hosts where there are any, and on one host where not', async () => {
  const nodeOf = async (managedBy?: string) => (await makeServer(managedBy)).node
  const first = await nodeOf('edge:a')
  await mirrorNode(database.db, {
    node: `${zone}-second`,
    zone,
    rack: 'rack-2',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 64, memoryMebibytes: 65_536, storageGibibytes: 1_000 },
  })
  expect(await nodeOf('edge:b')).toBe(first)
  expect(await nodeOf('edge:a')).not.toBe(first)
  expect([first, `${zone}-second`]).toContain(await nodeOf('edge:a'))
})

test('a shared address is no server’s, and no server gets it', async () => {
  const shared = await share()
  expect(await share()).toEqual(shared)
  expect((await attach()).ipv4Address).not.toBe(shared.ipv4Address)
  expect(await refusalOf(attach({ ipv4Address: shared.ipv4Address }))).toBe('409 in_use')
  const taken = await attach()
  expect(await refusalOf(share('edge/other', { ipv4Address: taken.ipv4Address }))).toBe('409 in_use')
  expect(await refusalOf(share('edge/other', { ipv4Address: shared.ipv4Address }))).toBe('409 in_use')
  expect(await listInterfaces(database.db, { accountId, serverId: 'nobody' })).toEqual([])
})

test('shared addresses are given back once their holder goes, and a full network has none', async () => {
  const shared = await share()
  await transaction((tx) => releaseSharedAddresses(tx, { accountId, holder: HOLDER }))
  await transaction((tx) => releaseSharedAddresses(tx, { accountId, holder: HOLDER }))
  const key = { accountId, networkId: network.networkId, holder: HOLDER }
  expect(await findSharedAddress(database.db, key)).toBeUndefined()
  expect((await attach()).ipv4Address).toBe(shared.ipv4Address)
  for (let more = 0; more < 4; more++) await share(`edge/${more}`)
  expect(await refusalOf(share('edge/last'))).toBe('503 no_free_address')
})
