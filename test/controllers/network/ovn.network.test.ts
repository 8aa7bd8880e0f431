/** The public network of a zone on a real OVN: guests of different hosts reach each other and the network outside, and
 *  use no address but theirs. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { converge } from '../../../controllers/network/converge.ts'
import { openOvsdb, type Ovsdb } from '../../../controllers/network/ovsdb.ts'
import { type PublicNetwork, type PublicPort, rowsOf } from '../../../controllers/network/topology.ts'
import { openOvnWorld, type OvnWorld } from './ovn-world.ts'

let world: OvnWorld
let northbound: Ovsdb

const SUBNET = { prefix: 24, gateway: '203.0.113.1', cidr: '203.0.113.0/24' }
const port = (number: number, changes: Partial<PublicPort> = {}): PublicPort => ({
  name: `g${number}`,
  macAddress: `52:54:00:00:00:0${number}`,
  ipv4: { address: `203.0.113.${number + 1}`, ...SUBNET },
  ipv6Prefixes: [`2001:db8:1:${number}::/64`],
  nodes: [`h${number}`],
  ...changes,
})
const network = (...ports: readonly PublicPort[]): PublicNetwork => ({
  zone: 'z1',
  ports,
  gatewayNodes: ['h1', 'h2'],
  outside: {
    physicalNetwork: 'outside',
    addresses: ['198.51.100.2/24', '2001:db8:ffff::2/64'],
    gateways: ['198.51.100.1', '2001:db8:ffff::1'],
  },
})
const bring = (...ports: readonly PublicPort[]) => converge(northbound, 'z1', rowsOf(network(...ports)))

beforeAll(async () => {
  world = await openOvnWorld()
  northbound = openOvsdb(world.remote)
  await bring(port(1), port(2))
  for (const [number, host] of [
    [1, 'h1'],
    [2, 'h2'],
  ] as const) {
    await world.addGuest(`g${number}`, host, `52:54:00:00:00:0${number}`)
    // As a guest's network-config says it; the route comes with router advertisements.
    await world.run(`g${number}`, 'ip', 'address', 'add', `203.0.113.${number + 1}/24`, 'dev', 'eth0')
    await world.run(`g${number}`, 'ip', 'route', 'add', 'default', 'via', '203.0.113.1')
    await world.run(`g${number}`, 'ip', 'address', 'add', `2001:db8:1:${number}::1/64`, 'dev', 'eth0', 'nodad')
  }
})
afterAll(async () => {
  northbound?.close()
  await world?.close()
})

const PATIENCE_MILLISECONDS = 45_000
const ping = (from: string, ...words: readonly string[]): Promise<boolean> =>
  world.run(from, 'ping', '-c', '1', '-W', '1', ...words).then(
    () => true,
    () => false,
  )
const reaches = (from: string, to: string) =>
  expect
    .poll(() => ping(from, to), { timeout: PATIENCE_MILLISECONDS, interval: 200, message: `${from} reaches ${to}` })
    .toBe(true)

test('guests of different hosts reach each other, by both protocols', async () => {
  await reaches('g1', '203.0.113.3')
  await reaches('g2', '203.0.113.2')
  await reaches('g1', '2001:db8:1:2::1')
  await reaches('g2', '2001:db8:1:1::1')
})

test('and the network outside, which reaches them', async () => {
  for (const guest of ['g1', 'g2']) {
    await reaches(guest, '198.51.100.1')
    await reaches(guest, '2001:db8:ffff::1')
  }
  for (const address of ['203.0.113.2', '203.0.113.3', '2001:db8:1:1::1', '2001:db8:1:2::1'])
    await reaches('world', address)
})

test('every address of a prefix leads to its guest', async () => {
  await world.run('g1', 'ip', 'address', 'add', '2001:db8:1:1:a:b:c:d/128', 'dev', 'eth0', 'nodad')
  await reaches('world', '2001:db8:1:1:a:b:c:d')
})

test('a guest cannot use the address of another, nor one of nobody', async () => {
  await world.run('g1', 'ip', 'address', 'add', '203.0.113.99/32', 'dev', 'eth0')
  await world.run('g1', 'ip', 'address', 'add', '2001:db8:1:2::99/128', 'dev', 'eth0', 'nodad')
  expect(await ping('g1', '-I', '203.0.113.99', '203.0.113.1')).toBe(false)
  expect(await ping('g1', '-I', '2001:db8:1:2::99', '2001:db8:ffff::1')).toBe(false)
  expect(await ping('g1', '203.0.113.1')).toBe(true)
})

test('a new prefix leads to the guest beside the one before, until that goes', async () => {
  await world.run('g1', 'ip', 'address', 'add', '2001:db8:1:ff::1/64', 'dev', 'eth0', 'nodad')
  await bring(port(1, { ipv6Prefixes: ['2001:db8:1:ff::/64', '2001:db8:1:1::/64'] }), port(2))
  await reaches('world', '2001:db8:1:ff::1')
  await reaches('world', '2001:db8:1:1::1')
  await bring(port(1, { ipv6Prefixes: ['2001:db8:1:ff::/64'] }), port(2))
  await expect.poll(() => ping('world', '2001:db8:1:1::1'), { timeout: PATIENCE_MILLISECONDS }).toBe(false)
  await reaches('world', '2001:db8:1:ff::1')
})

test(
  'what is so already takes no transaction, and a guest that goes ' + 'leaves nothing; what is not ours stays',
  async () => {
    await northbound.transact('OVN_Northbound', [
      { op: 'insert', table: 'Logical_Switch', row: { name: 'somebody-elses' } },
    ])
    await bring(port(1), port(2))
    expect(await bring(port(1), port(2))).toBe(0)
    expect(await bring(port(1))).toBeGreaterThan(0)
    const [ports, routes, switches] = await northbound.transact(
      'OVN_Northbound',
      ['Logical_Switch_Port', 'Logical_Router_Static_Route', 'Logical_Switch'].map((table) => ({
        op: 'select',
        table,
        where: [],
      })),
    )
    expect(ports?.rows?.map((row) => row['name'])).not.toContain('g2')
    expect(routes?.rows?.map((row) => row['ip_prefix'])).not.toContain('2001:db8:1:2::/64')
    expect(switches?.rows?.map((row) => row['name'])).toContain('somebody-elses')
    await converge(northbound, 'z1', [])
    const left = await northbound.transact(
      'OVN_Northbound',
      ['Logical_Switch', 'Logical_Router', 'DHCP_Options', 'Logical_Switch_Port'].map((table) => ({
        op: 'select',
        table,
        where: [],
      })),
    )
    expect(left.map((answer) => answer.rows?.length)).toEqual([1, 0, 0, 0])
  },
)
