/** `node bench/networks-at-scale.ts [--networks 250,500,1000] [--servers 5] [--rules 100] [--hosts 100] [--times 3]
 *  [--shared FOLDER]`: one zone on a real OVN with simulated hosts, which grows to each of the sizes, and the cost of
 *  one change there: processor time of the controllers and of OVN's parts, when it is in the database, when OVN has
 *  computed it, and when hosts have installed it. Prints tables for docs/scale.md. PATH selects another OVN, --shared
 *  its schemas. Needs root, and a quarter of an hour; `npm run bench` does not run it. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Bundle } from '../controllers/network/ovn/ovn.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { answerHelp } from '../kit/sys/help.ts'
import { cpuSeconds, exitProcess, printLine, processArguments, processId, stopSignal } from '../kit/sys/process.ts'
import { until } from '../test/eventually.ts'
import {
  bulkFirewall,
  bulkNetwork,
  bulkPublicPort,
  bulkRouter,
  bulkServer,
  type NetworkZone,
  openNetworkZone,
  type ZoneSize,
} from './network-zone.ts'
import { HOSTS } from '../test/controllers/network/ovn/ovn-world.ts'
import { median } from './runner.ts'

const TICKS_PER_SECOND = 100
/** A machine that also does other work takes this long. */
const GROWN_MILLISECONDS = 3_600_000

answerHelp(import.meta.filename)
const { values } = parseArgs({
  args: [...processArguments()],
  options: {
    networks: { type: 'string', default: '250,500,1000' },
    servers: { type: 'string', default: '5' },
    rules: { type: 'string', default: '100' },
    hosts: { type: 'string', default: '100' },
    times: { type: 'string', default: '3' },
    shared: { type: 'string' },
  },
})
/** Repetitions of each change. */
const TIMES = Number(values.times)
const sizes = values.networks.split(',').map(Number)
const shape: ZoneSize = {
  networks: 0,
  servers: Number(values.servers),
  rules: Number(values.rules),
  hosts: Number(values.hosts),
}

/** Processor seconds and resident MiB of the processes of OVN's centre, by program and database. */
async function usageOf(
  zone: NetworkZone,
): Promise<ReadonlyMap<string, { readonly cpu: number; readonly mib: number }>> {
  const files = await Promise.all(
    ['central', ...HOSTS].map(async (place) =>
      (await readdir(join(zone.world.folder, place))).flatMap((file) =>
        file.endsWith('.pid') ? [{ place, file }] : [],
      ),
    ),
  )
  return new Map(
    await Promise.all(
      files.flat().map(async ({ place, file }) => {
        const pid = (await readFile(join(zone.world.folder, place, file), 'utf8')).trim()
        const [program = ''] = /ovn-northd|ovn-controller|ovs-vswitchd|ovsdb-server/.exec(file) ?? []
        const of = place === 'central' ? (/central(nb|sb)ctl/.exec(file)?.[1] ?? '') : place
        return [`${program} ${of}`.trim(), await usageOfProcess(pid)] as const
      }),
    ),
  )
}

async function usageOfProcess(pid: string | number) {
  const [stat, status] = await Promise.all(['stat', 'status'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8')))
  const fields = (stat ?? '').slice((stat ?? '').lastIndexOf(')') + 2).split(' ')
  return {
    cpu: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
    mib: Math.round(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status ?? '')?.[1]) / 1_024),
  }
}

interface Cost {
  readonly controllers: number
  readonly written: number
  readonly computed: number
  readonly installed: number
  /** Processor milliseconds. */
  readonly northd: number
  readonly southbound: number
  /** Of the host that used the most. */
  readonly host: number
}

/** The sequence is incremented at most once a second: after this pause, the measured time is OVN's alone. */
const PAUSE_MILLISECONDS = 1_500

async function costOf(zone: NetworkZone, bundle: Bundle): Promise<Cost> {
  await clock.sleep(PAUSE_MILLISECONDS)
  const before = await usageOf(zone)
  const [startedAt, cpu] = [clock.monotonicMilliseconds(), cpuSeconds()]
  const { sequence } = await zone.ovn.apply(bundle)
  const written = clock.monotonicMilliseconds() - startedAt
  const controllers = (cpuSeconds() - cpu) * 1_000
  const reached = async (nodes: readonly string[]) => {
    await until(
      'it to be there',
      () => zone.ovn.installed(nodes),
      (at) => (at ?? 0) >= sequence,
      600_000,
    )
    return clock.monotonicMilliseconds() - startedAt
  }
  const computed = await reached([])
  const installed = await reached(zone.hosts)
  const after = await usageOf(zone)
  const taken = (name: string) => ((after.get(name)?.cpu ?? 0) - (before.get(name)?.cpu ?? 0)) * 1_000
  const host = Math.max(...HOSTS.map((each) => taken(`ovn-controller ${each}`)))
  const [northd, southbound] = [taken('ovn-northd'), taken('ovsdb-server sb')]
  return { controllers, written, computed, installed, northd, southbound, host }
}

const line = (cells: readonly (string | number)[]) => printLine(`| ${cells.join(' | ')} |`)
const whole = (value: number) => value.toFixed(value < 10 ? 1 : 0)

async function measure(zone: NetworkZone, size: ZoneSize): Promise<void> {
  const begun = { at: clock.monotonicMilliseconds(), cpu: cpuSeconds() }
  await zone.grow(size.networks)
  const seconds = (clock.monotonicMilliseconds() - begun.at) / 1_000
  const ports = 2 * size.networks * size.servers
  printLine(
    `${size.networks} networks and routers, ${ports} ports, firewalls of ${size.rules} rules, ${size.hosts} hosts`,
  )
  printLine(`grown to it in ${whole(seconds)} s; controllers ${whole(cpuSeconds() - begun.cpu)} s of processor`)
  line(['process', 'processor s until now', 'MiB'])
  const own = await usageOfProcess(processId())
  line(['controllers', whole(own.cpu), own.mib])
  for (const [name, { cpu, mib }] of await usageOf(zone)) line([name, whole(cpu), mib])
  await measureChanges(zone, size)
}

async function measureChanges(zone: NetworkZone, size: ZoneSize): Promise<void> {
  const server = (time: number) => bulkServer(size.networks + time, 0, size)
  const changes: Readonly<Record<string, (time: number) => Bundle>> = {
    'a rule of a firewall': (time) => bulkFirewall(bulkServer(size.networks - 1 - time, 0, size), size.rules - 1),
    'a network': (time) => bulkNetwork(size.networks + time),
    'a router with NAT': (time) => bulkRouter(size.networks + time, size),
    'a public port': (time) => bulkPublicPort(server(time)),
    'an interface with a firewall': (time) => bulkFirewall(server(time), size.rules),
    'a server that goes': (time) => ({ ...bulkFirewall(server(time), 0), rows: [] }),
  }
  line([
    'one change',
    'controllers, processor ms',
    'northd',
    'southbound database',
    'a host',
    'written, ms',
    'computed, ms',
    'installed, ms',
  ])
  for (const [what, change] of Object.entries(changes)) {
    const costs: Cost[] = []
    for (let time = 0; time < TIMES; time++) costs.push(await costOf(zone, change(time)))
    const of = (part: keyof Cost) => whole(median(costs.map((cost) => cost[part])))
    const processor = [of('controllers'), of('northd'), of('southbound'), of('host')]
    line([what, ...processor, of('written'), of('computed'), of('installed')])
  }
}

const zone = await openNetworkZone(shape, { shared: values.shared, installedMilliseconds: GROWN_MILLISECONDS })
stopSignal().addEventListener('abort', () => void zone.close().finally(() => exitProcess(1)))
try {
  for (const networks of sizes) await measure(zone, { ...shape, networks })
} finally {
  await zone.close()
}
