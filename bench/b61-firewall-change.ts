/** From the write of a server's firewall until packets pass that were dropped before, on a real OVN with two hosts,
 *  against one row of OVN's database that is changed by hand. Guests are network namespaces; the zone has as many
 *  additional ports as the round says. */
import { connectOvsdb } from '../controllers/network/ovn/ovsdb.ts'
import { rowId } from '../controllers/network/ovn/row.ts'
import { type Firewall, NO_FIREWALL } from '../domain/server/firewall.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { until } from '../test/eventually.ts'
import { addressOf, type NetworkZone, openNetworkZone, ZONE } from './network-zone.ts'
import { type Bench, median, percentile } from './runner.ts'

const SIZE = {
  full: { networks: 50, servers: 5, rules: 100, hosts: 10 },
  short: { networks: 1, servers: 1, rules: 3, hosts: 1 },
}
const [FROM, OURS, BY_HAND] = ['g1', 'g2', 'g3']
const LATENCY = 'ms to effect, p99'
const PORT = 1000
const TIMEOUT_SECONDS = 0.01

const closed: Firewall = { ...NO_FIREWALL, enabled: true, defaultInbound: 'drop' }
const open: Firewall = { ...closed, defaultInbound: 'accept' }

export const bench: Bench = {
  name: 'B61 firewall change',
  question: `a firewall that opens, to the first packet, beside ${2 * SIZE.full.networks * SIZE.full.servers} ports`,
  subjectName: 'svccloud',
  peerName: "one row of OVN's database by hand",
  unit: 'changes',
  goal: 0.8,
  limits: { [LATENCY]: 1_000 },
  heldBy:
    'OVN 23.03 computes all rules of a zone anew for a change of one, and again for the answers of hosts, which ' +
    'takes it 6 to 18 s of processor time beside 10,000 ports (docs/scale.md).',
  tier: 'network',
  async open(round) {
    const zone = await openNetworkZone(SIZE[round])
    const database = connectOvsdb(zone.world.remote, { clock })
    const taken = { subject: [] as number[], peer: [] as number[] }
    const byHand = (action: string) =>
      database.transact('OVN_Northbound', [
        { op: 'update', table: 'ACL', where: [['name', '==', 'by-hand']], row: { action } },
        { op: 'mutate', table: 'NB_Global', where: [], mutations: [['nb_cfg', '+=', 1]] },
      ])
    await database.transact('OVN_Northbound', groupByHand())

    const passes = async (guest: string): Promise<boolean> =>
      (await zone.tell(FROM, 'datagram', { address: addressOf(guest), port: PORT, timeout: TIMEOUT_SECONDS })) === true
    async function measured(side: keyof typeof taken, guest: string, change: (isOpen: boolean) => Promise<unknown>) {
      await change(false)
      await until(
        `nothing to reach ${guest}`,
        () => passes(guest),
        (isThrough) => !isThrough,
      )
      const startedAt = clock.monotonicMilliseconds()
      const changing = change(true)
      while (!(await passes(guest)));
      const milliseconds = clock.monotonicMilliseconds() - startedAt
      await changing
      taken[side].push(milliseconds)
      return milliseconds
    }
    const ours = (isOpen: boolean) => openOrClose(zone, isOpen)
    const theirs = (isOpen: boolean) => byHand(isOpen ? 'allow-related' : 'drop')
    return {
      subject: { run: (seconds) => many(seconds, () => measured('subject', OURS, ours)) },
      peer: { run: (seconds) => many(seconds, () => measured('peer', BY_HAND, theirs)) },
      facts: () => ({
        'ms to effect, median': median(taken.subject).toFixed(0),
        'by hand': median(taken.peer).toFixed(0),
        [LATENCY]: percentile(taken.subject, 0.99).toFixed(0),
      }),
      async close() {
        database.close()
        await zone.close()
      },
    }
  },
}

const openOrClose = (zone: NetworkZone, isOpen: boolean) => zone.firewall(OURS, isOpen ? open : closed)

/** A group for the port of the guest with one rule, unknown to the platform. */
const groupByHand = () => [
  {
    op: 'insert',
    table: 'ACL',
    'uuid-name': 'acl',
    row: {
      name: 'by-hand',
      direction: 'to-lport',
      priority: 1_000,
      match: 'outport == @by_hand && ip',
      action: 'drop',
    },
  },
  {
    op: 'insert',
    table: 'Port_Group',
    row: {
      name: 'by_hand',
      ports: ['uuid', rowId(ZONE, { table: 'Logical_Switch_Port', key: BY_HAND })],
      acls: ['named-uuid', 'acl'],
    },
  },
]

/** At least one; the seconds are those until the effect. */
async function many(seconds: number, work: () => Promise<number>) {
  const until = clock.monotonicMilliseconds() + seconds * 1_000
  let [units, milliseconds] = [0, 0]
  do {
    milliseconds += await work()
    units++
  } while (clock.monotonicMilliseconds() < until)
  return { units, seconds: milliseconds / 1_000 }
}
