/** Resource usage of each guest of this host, as series with the ids of its account and server. At most SERVERS_MAXIMUM
 *  guests are shown: a host with more shows the first by name. */
import { Counter, Gauge, type Registry } from '../../kit/sys/metrics.ts'
import type { InstanceSpec } from '../../resources/instance/index.ts'
import type { Guest, GuestCounters, Hypervisor } from './drivers/hypervisor/hypervisor.ts'

export interface ServerMetricsOptions {
  readonly registry: Registry
  readonly hypervisor: Pick<Hypervisor, 'list' | 'counters'>
  /** Spec of the instance with that name; undefined when there is none. */
  readonly specOf: (instance: string) => InstanceSpec | undefined
}

/** Prefix of an account's namespace, before its id. */
const ACCOUNT_NAMESPACE = /^acct-/
export const SERVERS_MAXIMUM = 1_000
interface Labels {
  readonly account: string
  readonly server: string
}

interface Reading {
  readonly labels: Labels
  readonly spec: InstanceSpec
  readonly counters: GuestCounters
}

/** Reads the guests at each scrape of the metrics. */
export function openServerMetrics(options: ServerMetricsOptions): void {
  const { registry } = options
  const labelled = { labelNames: ['account', 'server'] as const, registers: [registry] }
  const counters = openCounters(registry, () => refresh())
  const cores = new Gauge({
    ...labelled,
    name: 'svccloud_server_cpu_cores',
    help: 'Virtual cores of the server',
    collect: () => refresh(),
  })
  const memory = new Gauge({
    ...labelled,
    name: 'svccloud_server_memory_bytes',
    help: 'Memory that the server has',
    collect: () => refresh(),
  })
  /** All series use one reading; the first collected series starts it. */
  let refreshing: Promise<void> | undefined
  function refresh(): Promise<void> {
    refreshing ??= readAll(options)
      .then((readings) => {
        for (const metric of [cores, memory, ...counters.map(([counter]) => counter)]) metric.reset()
        for (const { labels, spec, counters: read } of readings) {
          cores.set({ ...labels }, spec.cores)
          memory.set({ ...labels }, spec.memoryMebibytes * 1_048_576)
          for (const [counter, valueOf] of counters) counter.inc({ ...labels }, valueOf(read))
        }
      })
      .finally(() => {
        refreshing = undefined
      })
    return refreshing
  }
}

/** Counters, each with its value from a guest's counters. */
function openCounters(
  registry: Registry,
  refresh: () => Promise<void>,
): readonly (readonly [Counter<keyof Labels>, (counters: GuestCounters) => number])[] {
  const labelled = { labelNames: ['account', 'server'] as const, registers: [registry] }
  return [
    [
      new Counter({
        ...labelled,
        name: 'svccloud_server_cpu_seconds_total',
        help: 'Processor time of the server since its guest was started',
        collect: () => refresh(),
      }),
      ({ cpuMilliseconds = 0 }) => cpuMilliseconds / 1_000,
    ],
    [
      new Counter({
        ...labelled,
        name: 'svccloud_server_disk_read_bytes_total',
        help: 'Bytes that the server has read from disks',
        collect: () => refresh(),
      }),
      ({ diskReadBytes }) => diskReadBytes,
    ],
    [
      new Counter({
        ...labelled,
        name: 'svccloud_server_disk_written_bytes_total',
        help: 'Bytes that the server has written to disks',
        collect: () => refresh(),
      }),
      ({ diskWrittenBytes }) => diskWrittenBytes,
    ],
    [
      new Counter({
        ...labelled,
        name: 'svccloud_server_network_received_bytes_total',
        help: 'Bytes that the server has received',
        collect: () => refresh(),
      }),
      ({ networkReceivedBytes = 0 }) => networkReceivedBytes,
    ],
    [
      new Counter({
        ...labelled,
        name: 'svccloud_server_network_transmitted_bytes_total',
        help: 'Bytes that the server has sent',
        collect: () => refresh(),
      }),
      ({ networkTransmittedBytes = 0 }) => networkTransmittedBytes,
    ],
  ]
}

/** Running guests with their counters; guests that do not answer are skipped. */
async function readAll({ hypervisor, specOf }: ServerMetricsOptions): Promise<readonly Reading[]> {
  const guests = (await hypervisor.list().catch(() => []))
    .filter(({ state }) => state === 'running')
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .slice(0, SERVERS_MAXIMUM)
  const readings = await Promise.all(
    guests.map(async ({ name }: Guest): Promise<Reading | undefined> => {
      const spec = specOf(name)
      const counters = await hypervisor.counters(name).catch(() => undefined)
      return spec === undefined || counters === undefined
        ? undefined
        : {
            labels: { account: spec.server.namespace.replace(ACCOUNT_NAMESPACE, ''), server: spec.server.name },
            spec,
            counters,
          }
    }),
  )
  return readings.filter((reading) => reading !== undefined)
}
