/** Real guests on two hosts in the public network of a zone, plugged in by the agent's driver as the controller's topology expects it. */
import type { ChildProcess } from 'node:child_process'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tapOf } from '../../../agents/node/drivers/network/ovn.ts'
import { converge } from '../../../controllers/network/converge.ts'
import { networkOf } from '../../../controllers/network/index.ts'
import { openOvsdb, type Ovsdb } from '../../../controllers/network/ovsdb.ts'
import { rowsOf } from '../../../controllers/network/topology.ts'
import { nodeBinary, signalProcess } from '../../../kit/sys/process.ts'
import { nodeNamespace } from '../../../resources/instance.ts'
import type { NodeSpec, NodeStatus } from '../../../resources/platform.ts'
import { instanceSpec } from '../../agents/node/instance-spec.ts'
import { type HostName, HOSTS, openOvnWorld, type OvnWorld } from './ovn-world.ts'

let world: OvnWorld
let northbound: Ovsdb
const guests = new Map<HostName, { readonly process: ChildProcess; readonly said: AsyncIterator<string> }>()

const nameOf = (host: HostName) => `guest-on-${host}`
const interfaceOf = (host: HostName) => {
  const number = HOSTS.indexOf(host) + 1
  return {
    macAddress: `52:54:00:00:00:0${number}`, kind: 'public' as const, ipv4: { address: `203.0.113.${number + 1}`, prefix: 24, gateway: '203.0.113.1' },
    ipv6: { address: `2001:db8:1:${number}::1`, prefix: 64, gateway: 'fe80::1' }, routedPrefixes: [`2001:db8:1:${number}::/64`],
  }
}
const API_VERSION = 'svccloud.dev/v1alpha1'
const instances = HOSTS.map((host) => ({
  apiVersion: API_VERSION, kind: 'Instance', metadata: { namespace: nodeNamespace(host), name: nameOf(host) },
  spec: instanceSpec({ interfaces: [interfaceOf(host)], metadata: { ...instanceSpec().metadata, zone: 'z1' } }),
}))
const nodes = HOSTS.map((host) => ({ apiVersion: API_VERSION, kind: 'Node', metadata: { name: host }, spec: { zone: 'z1', roles: ['compute'] } as unknown as NodeSpec, status: { state: 'ready' } as NodeStatus })) // what the topology reads of them
const ZONE = {
  displayName: 'Z', region: 'r', isClosed: false, capabilities: [],
  publicNetwork: { physicalNetwork: 'outside', addresses: ['198.51.100.2/24', '2001:db8:ffff::2/64'], gateways: ['198.51.100.1', '2001:db8:ffff::1'] },
}

beforeAll(async () => {
  world = await openOvnWorld()
  northbound = openOvsdb(world.remote)
  await converge(northbound, 'z1', rowsOf(networkOf('z1', ZONE, instances, nodes)))
  for (const host of HOSTS) {
    const folder = join(world.folder, `agent-${host}`)
    await mkdir(folder)
    const process = world.start(host, nodeBinary(), join(import.meta.dirname, 'ovn-guest.ts'), folder, nameOf(host), JSON.stringify(interfaceOf(host)))
    if (process.stdout === null) throw new Error('nobody hears the guest')
    guests.set(host, { process, said: createInterface({ input: process.stdout })[Symbol.asyncIterator]() })
    expect(await hear(host)).toBe('running')
  }
})
afterAll(async () => {
  northbound?.close()
  for (const host of guests.keys()) {
    for (const guest of await readdir(join(world.folder, `agent-${host}`, 'guests')).catch(() => [])) {
      const pid = Number(await readFile(join(world.folder, `agent-${host}`, 'guests', guest, 'qemu.pid'), 'utf8').catch(() => '0'))
      if (pid > 0) signalProcess(pid, 'SIGKILL')
    }
  }
  await world?.close()
})

async function hear(host: HostName): Promise<string> {
  const next = await guests.get(host)?.said.next()
  return next?.done === false ? next.value : 'nothing more'
}

const PATIENCE_MILLISECONDS = 90_000
const reaches = (from: string, to: string) =>
  expect.poll(() => world.run(from, 'ping', '-c', '1', '-W', '1', to).then(() => true, () => false), { timeout: PATIENCE_MILLISECONDS, interval: 300, message: `${from} reaches ${to}` }).toBe(true)

test('real guests of two hosts are reached from outside at the addresses of their servers', async () => {
  for (const address of ['203.0.113.2', '203.0.113.3', '2001:db8:1:1::1', '2001:db8:1:2::1']) await reaches('world', address)
})

test('their traffic is counted', async () => {
  guests.get('h1')?.process.stdin?.write('\n')
  const counters = JSON.parse(await hear('h1')) as { readonly networkReceivedBytes: number; readonly networkTransmittedBytes: number }
  expect([counters.networkReceivedBytes > 0, counters.networkTransmittedBytes > 0]).toEqual([true, true])
})

test('a guest that goes is unplugged', async () => {
  expect(await world.portsOf('h1')).toContain(tapOf(nameOf('h1'), 0))
  guests.get('h1')?.process.stdin?.end()
  expect(await hear('h1')).toBe('gone')
  expect(await world.portsOf('h1')).not.toContain(tapOf(nameOf('h1'), 0))
  expect(await world.run('h1', 'ip', '-brief', 'link')).not.toContain(tapOf(nameOf('h1'), 0))
})
