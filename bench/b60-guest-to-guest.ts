/** Two guests of a private network on one host, each behind the agent's guard and OVN's rules for its port, against two
 *  that are connected to a bare bridge of the same Open vSwitch. Guests are network namespaces; both paths use the
 *  userspace datapath. */
import { join } from 'node:path'
import { interfaceRows } from '../controllers/network/ovn/interface.ts'
import { openOvn } from '../controllers/network/ovn/open-ovn.ts'
import { networkRows } from '../controllers/network/ovn/private-network.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { nodeBinary } from '../kit/sys/process.ts'
import { asLineProcess, type LineProcess } from '../test/controllers/network/ovn/line-process.ts'
import { openOvnWorld } from '../test/controllers/network/ovn/ovn-world.ts'
import { eventually } from '../test/eventually.ts'
import { type Bench, median, type Side } from './runner.ts'

const HOST = 'h1'
const ZONE = 'z1'
const MEBIBYTE = 1024 * 1024
const ECHOES = { full: 2_000, short: 5 }
const LATENCY = 'latency of one byte, bare / guests, median'
const TRAFFIC = join(import.meta.dirname, 'traffic.ts')

export const bench: Bench = {
  name: 'B60 guest to guest',
  question: "one TCP stream between two guests' ports on a host",
  subjectName: 'guests of a private network',
  peerName: 'a bare OVS bridge',
  unit: 'MiB',
  goal: 0.9,
  heldBy:
    'in the userspace datapath each packet passes conntrack, which firewalls need, and a patch port more: the guard ' +
    'before the integration bridge.',
  tier: 'network',
  async open(round) {
    const world = await openOvnWorld()
    const ovn = openOvn({ northbound: world.remote, southbound: world.southbound, clock, log })
    const networkId = 'n'
    const guests = ['g1', 'g2', 'b1', 'b2'].map((name, index) => ({
      name,
      macAddress: `52:54:00:00:00:0${index + 1}`,
      ipv4: `10.0.0.${index + 2}`,
    }))
    const echoes = new Map<string, number[]>()
    const wires = new Map<string, LineProcess>()
    const vsctl = (...words: readonly string[]) =>
      world.run(HOST, 'ovs-vsctl', `--db=unix:${join(world.folder, HOST, 'db.sock')}`, ...words)

    async function openWire({ name, macAddress, ipv4 }: (typeof guests)[number]): Promise<void> {
      await world.addGuest(name, HOST, macAddress)
      await world.run(name, 'ip', 'address', 'add', `${ipv4}/24`, 'dev', 'eth0')
      wires.set(name, asLineProcess(world.start(name, nodeBinary(), TRAFFIC), `the wire of ${name}`))
    }
    /** Moves a guest from OVN to the bare bridge. */
    async function moveToBare(name: string): Promise<void> {
      await vsctl('del-port', `${name}p`, '--', 'add-port', 'bare', `${name}p`)
    }
    const order = (name: string, line: object) =>
      wires.get(name)?.order(line) ?? Promise.reject(new Error(`${name} has no wire`))
    const sideOf = (from: string, address: string): Side => ({
      async run(seconds) {
        const taken = await order(from, { do: 'echo', address, times: ECHOES[round] })
        echoes.set(from, [...(echoes.get(from) ?? []), ...(taken as readonly number[])]) // as traffic.ts says
        const streamed = await order(from, { do: 'stream', address, seconds })
        const { bytes, seconds: lasted } = streamed as { readonly bytes: number; readonly seconds: number } // likewise
        return { units: bytes / MEBIBYTE, seconds: lasted }
      },
    })

    const close = async () => {
      ovn.close()
      await world.close()
    }
    try {
      const facts = { zone: ZONE, id: networkId, ipv4Cidr: '10.0.0.0/24', ipv6Prefix: 'fd00:a::/64' }
      await ovn.apply({
        zone: ZONE,
        owner: `Network/${networkId}`,
        rows: networkRows({ ...facts, dnsServers: [], dhcpEnabled: true }),
      })
      for (const { name, macAddress, ipv4 } of guests.slice(0, 2))
        await ovn.apply({
          zone: ZONE,
          owner: `Server/${name}`,
          rows: interfaceRows({
            zone: ZONE,
            id: name,
            networkId,
            macAddress,
            ipv4,
            hostname: name,
            nodes: [HOST],
            ipv6: `fd00:a::${ipv4.at(-1)}`,
          }),
        })
      await vsctl('add-br', 'bare', '--', 'set', 'bridge', 'bare', 'datapath_type=netdev')
      for (const guest of guests) await openWire(guest)
      for (const name of ['b1', 'b2']) await moveToBare(name)
      for (const [from, address] of [
        ['g1', '10.0.0.3'],
        ['b1', '10.0.0.5'],
      ] as const)
        await eventually(`${from} to reach ${address}`, () =>
          order(from, { do: 'echo', address, times: 1 }).then(
            () => true,
            () => false,
          ),
        )
    } catch (error) {
      await close()
      throw error
    }
    return {
      subject: sideOf('g1', '10.0.0.3'),
      peer: sideOf('b1', '10.0.0.5'),
      facts: () => {
        const [ours, bare] = [median(echoes.get('g1') ?? []), median(echoes.get('b1') ?? [])]
        return { [LATENCY]: (bare / ours).toFixed(2), 'microseconds of it': `${bare.toFixed(0)} / ${ours.toFixed(0)}` }
      },
      close,
    }
  },
}
