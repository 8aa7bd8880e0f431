/** The model of firewalls against real packets: firewalls that a seed draws at three servers of two networks, on two
 *  hosts, and flows between them of both families, of all protocols, whole and in fragments. What the model lets pass
 *  is answered, and errors about it come back; what it drops does not arrive, whatever the datapath had cached before.
 *  Replay with SVCCLOUD_TEST_SEED. */
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Firewall } from '../../../../domain/server/firewall.ts'
import { judge } from '../../../models/firewall-model.ts'
import { nodeBinary } from '../../../../kit/sys/process.ts'
import { numberBetween, systemRandom } from '../../../../kit/sys/random.ts'
import {
  addressOf,
  CONTROL_PORT,
  type DrawnFlow,
  FILTERED,
  type Filtered,
  firewalls,
  flows,
} from './random-firewalls.ts'
import { HOSTS } from './ovn-world.ts'
import { openTenants, PATIENCE, type Tenants } from './tenants.ts'

const ROUNDS = 8
/** Every second time something passed here that Open vSwitch had cached before it was forbidden. */
const CHOSEN = { seed: 189_974_848, rounds: 3 }
const FLOWS_PER_ROUND = 30
/** For what is expected to be answered: it is tried again, because the first of a packet may be lost. */
const TRIES = 3
const ANSWER_SECONDS = 10

const drawnSeed = Number(
  process.env['SVCCLOUD_TEST_SEED'] ?? Math.floor(numberBetween(systemRandom, { least: 0, most: 2 ** 31 })),
)
let tenants: Tenants
/** Ports that flows come from, and numbers of echoes: no two are the same. */
let source = 20_000

beforeAll(async () => {
  tenants = await openTenants()
  const { run } = tenants.world
  for (const guest of FILTERED) {
    const gateway = guest === 'a3' ? 'fd00:c::1' : 'fd00:a::1'
    await run(guest, 'ip', '-6', 'route', 'replace', 'default', 'via', gateway)
    // Errors are answers here, however many there are.
    await run(guest, 'sysctl', '-qw', 'net.ipv4.icmp_ratelimit=0', 'net.ipv6.icmp.ratelimit=0')
    await tenants.tell(guest, 'hear')
  }
  const guard = join(import.meta.dirname, 'guard.ts')
  for (const host of HOSTS) tenants.world.start(host, nodeBinary(), guard, 'fresh')
})
afterAll(() => tenants?.close())

/** Without firewalls, so that nobody has to be looked for later. */
test('without firewalls everybody is there', async () => {
  for (const from of FILTERED)
    for (const to of FILTERED.filter((other) => other !== from))
      for (const family of ['ipv4', 'ipv6'] as const)
        await expect
          .poll(() => tenants.tell(from, 'connect', { address: addressOf(to, family), port: 1000 }), PATIENCE)
          .toContain(`${to} sees`)
})

type Firewalls = Readonly<Record<Filtered, Firewall>>

function passes(drawn: Firewalls, { from, to, family, protocol, port }: DrawnFlow): boolean {
  const ends = [
    { firewall: drawn[from], direction: 'out', remote: addressOf(to, family) },
    { firewall: drawn[to], direction: 'in', remote: addressOf(from, family) },
  ] as const
  return ends.every(
    ({ firewall, direction, remote }) => judge(firewall, { direction, protocol, remote, port }) === 'accept',
  )
}

interface Sent {
  readonly flow: DrawnFlow
  readonly isExpected: boolean
  readonly source: number
}

/** Once the agents of the hosts have done their part of what was installed. */
async function flowsAreFresh(): Promise<void> {
  const { run, folder } = tenants.world
  const sequenceOf = async (host: string, key: string) =>
    Number(
      (
        await run(
          host,
          'ovs-vsctl',
          `--db=unix:${join(folder, host, 'db.sock')}`,
          '--if-exists',
          'get',
          'bridge',
          'br-int',
          `external_ids:${key}`,
        )
      ).replaceAll('"', ''),
    )
  for (const host of HOSTS)
    await expect
      .poll(() => sequenceOf(host, 'svccloud-flows-dropped'), PATIENCE)
      .toBeGreaterThanOrEqual(await sequenceOf(host, 'ovn-nb-cfg'))
}

/** Sends the flows, and answers which of them were answered. */
async function exchange(sent: readonly Sent[]): Promise<ReadonlySet<Sent>> {
  const answered = await Promise.all(
    FILTERED.map(async (from) => {
      const own = sent.filter(({ flow }) => flow.from === from)
      const places = await tenants.tell(from, 'exchange', {
        flows: own.map(({ flow: { to, family, protocol, port = 0, size }, source: at }) => ({
          protocol,
          port,
          size,
          source: at,
          address: addressOf(to, family),
        })),
        expected: own.flatMap(({ isExpected }, place) => (isExpected ? [place] : [])),
        patience: ANSWER_SECONDS,
      })
      return (places as readonly number[]).flatMap((place) => own[place] ?? []) // as wire.py answers
    }),
  )
  return new Set(answered.flat())
}

const asSent = (flow: DrawnFlow, isExpected: boolean): Sent => ({ flow, isExpected, source: source++ })
const controls = (): readonly Sent[] =>
  FILTERED.flatMap((from) =>
    FILTERED.filter((to) => to !== from).flatMap((to) =>
      (['ipv4', 'ipv6'] as const).map((family) =>
        asSent({ from, to, family, protocol: 'udp', port: CONTROL_PORT, size: 10 }, true),
      ),
    ),
  )

/** What is wrong with how the firewalls judge the flows. */
async function faultsOf(drawn: Firewalls, wanted: readonly DrawnFlow[]): Promise<readonly string[]> {
  const faults: string[] = []
  let left = [...wanted.map((flow) => asSent(flow, passes(drawn, flow))), ...controls()]
  for (let time = 0; time < TRIES && left.some(({ isExpected }) => isExpected); time++) {
    const answered = await exchange(left)
    const arrived = new Map(
      await Promise.all(
        FILTERED.map(async (to) => [to, (await tenants.tell(to, 'arrived')) as readonly string[]] as const),
      ),
    )
    for (const { flow, isExpected, source: at } of left) {
      const mark = `${flow.protocol} ${addressOf(flow.from, flow.family)} ${at}`
      if (!isExpected && arrived.get(flow.to)?.includes(mark) === true) faults.push(`arrived: ${JSON.stringify(flow)}`)
    }
    left = left.filter((one) => one.isExpected && !answered.has(one)).map(({ flow }) => asSent(flow, true))
  }
  return [...faults, ...left.map(({ flow }) => `not answered: ${JSON.stringify(flow)}`)]
}

test.for([CHOSEN, { seed: drawnSeed, rounds: ROUNDS }])(
  'firewalls judge packets as their model does (%o)',
  async ({ seed, rounds: numRuns }) => {
    const rounds = fc.sample(
      fc.record({ firewalls: fc.tuple(firewalls, firewalls, firewalls), flows: fc.array(flows, EXACTLY) }),
      { seed, numRuns },
    )
    const count = { passed: 0, dropped: 0 }
    for (const {
      firewalls: [a1, a2, a3],
      flows: wanted,
    } of rounds) {
      const drawn = { a1, a2, a3 }
      await tenants.firewalls(FILTERED.map((guest) => [guest, drawn[guest]]))
      await flowsAreFresh()
      const faults = await faultsOf(drawn, wanted)
      expect(faults, `seed ${seed}: ${JSON.stringify(drawn)}`).toEqual([])
      const passed = wanted.filter((flow) => passes(drawn, flow)).length
      count.passed += passed
      count.dropped += wanted.length - passed
    }
    expect(count.passed).toBeGreaterThan(0)
    expect(count.dropped).toBeGreaterThan(0)
  },
)

const EXACTLY = { minLength: FLOWS_PER_ROUND, maxLength: FLOWS_PER_ROUND }
