/** From the assignment of a floating IP to another server until that server answers the outside at it, on a real OVN
 *  with two hosts, against a row of OVN's database that is changed by hand. Guests are network namespaces. */
import { floatingIpRows } from '../controllers/network/ovn/floating-ip.ts'
import { natRouter, zoneEdgePort, zoneRouter } from '../controllers/network/ovn/names.ts'
import { connectOvsdb } from '../controllers/network/ovn/ovsdb.ts'
import { rowId } from '../controllers/network/ovn/row.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { eventually } from '../test/eventually.ts'
import { addressOf, openNetworkZone, OUTSIDE, ROUTER, ZONE } from './network-zone.ts'
import { type Bench, median, percentile } from './runner.ts'

const SIZE = {
  full: { networks: 50, servers: 5, rules: 100, hosts: 10 },
  short: { networks: 1, servers: 1, rules: 3, hosts: 1 },
}
const SERVERS = ['g1', 'g3']
const [OURS, BY_HAND] = ['203.0.113.140', '203.0.113.141']
const PORT = 1000
const TIMEOUT_SECONDS = 0.05

export const bench: Bench = {
  name: 'B62 floating IP move',
  question: `a floating IP that moves, to the first answer, beside ${2 * SIZE.full.networks * SIZE.full.servers} ports`,
  subjectName: 'svccloud',
  peerName: "one row of OVN's database by hand",
  unit: 'moves',
  goal: 0.8,
  tier: 'network',
  async open(round) {
    const zone = await openNetworkZone(SIZE[round])
    const database = connectOvsdb(zone.world.remote, { clock })
    const taken = { subject: [] as number[], peer: [] as number[] }
    await database.transact('OVN_Northbound', floatingByHand())
    const ours = (server: string) =>
      zone.ovn.apply({
        zone: ZONE,
        owner: 'FloatingIp/f',
        rows: floatingIpRows({
          zone: ZONE,
          id: 'f',
          address: OURS,
          target: { kind: 'private', routerId: ROUTER.id, routerAddress: ROUTER.address, address: addressOf(server) },
        }),
      })
    const theirs = (server: string) =>
      database.transact('OVN_Northbound', [
        {
          op: 'update',
          table: 'NAT',
          where: [['external_ip', '==', BY_HAND]],
          row: { logical_ip: addressOf(server) },
        },
        { op: 'mutate', table: 'NB_Global', where: [], mutations: [['nb_cfg', '+=', 1]] },
      ])
    const answers = async (address: string, server: string): Promise<boolean> =>
      String(await zone.tell(OUTSIDE, 'connect', { address, port: PORT, timeout: TIMEOUT_SECONDS })).startsWith(server)
    let moves = 0
    async function run(side: keyof typeof taken, address: string, move: (server: string) => Promise<unknown>) {
      const server = SERVERS[moves++ % SERVERS.length] ?? ''
      const startedAt = clock.monotonicMilliseconds()
      const moving = move(server)
      while (!(await answers(address, server)));
      const milliseconds = clock.monotonicMilliseconds() - startedAt
      await moving
      taken[side].push(milliseconds)
      return { units: 1, seconds: milliseconds / 1_000 }
    }
    for (const [address, move] of [
      [OURS, ours],
      [BY_HAND, theirs],
    ] as const) {
      await move('g3')
      await eventually(`${address} to answer`, () => answers(address, 'g3'))
    }
    return {
      subject: { run: () => run('subject', OURS, ours) },
      peer: { run: () => run('peer', BY_HAND, theirs) },
      facts: () => ({
        'ms to the first answer, median': median(taken.subject).toFixed(0),
        'by hand': median(taken.peer).toFixed(0),
        'ms, most': percentile(taken.subject, 1).toFixed(0),
      }),
      async close() {
        database.close()
        await zone.close()
      },
    }
  },
}

/** Like the platform's, but unknown to it. */
const floatingByHand = () => [
  {
    op: 'insert',
    table: 'NAT',
    'uuid-name': 'nat',
    row: { type: 'dnat_and_snat', external_ip: BY_HAND, logical_ip: addressOf('g1') },
  },
  {
    op: 'insert',
    table: 'Logical_Router_Static_Route',
    'uuid-name': 'route',
    row: { ip_prefix: `${BY_HAND}/32`, nexthop: ROUTER.address, output_port: zoneEdgePort(ZONE) },
  },
  ...(
    [
      [natRouter(ROUTER.id), 'nat', 'nat'],
      [zoneRouter(ZONE), 'static_routes', 'route'],
    ] as const
  ).map(([router, column, row]) => ({
    op: 'mutate',
    table: 'Logical_Router',
    where: [['_uuid', '==', ['uuid', rowId(ZONE, router)]]],
    mutations: [[column, 'insert', ['set', [['named-uuid', row]]]]],
  })),
]
