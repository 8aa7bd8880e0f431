/** Serves S3 clients and the platform: all code that reads data of others, and no code that needs root. */
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import type { Random } from '../../kit/sys/random.ts'
import { Outages } from '../../kit/sys/outages.ts'
import { type Cells, fingerprintIn } from './cells.ts'
import { startControl } from './control-server.ts'
import { startFrontEnd } from './front-end.ts'
import { type Engines, openEngines } from './engines.ts'
import { openFrontEndMetrics } from './metrics.ts'
import type { InitialState } from './orders.ts'
import { type Keeper, openTenants, type Tenants } from './tenants.ts'
import { openFolderUsage } from './usage.ts'

export interface InterfaceOptions {
  readonly beginning: InitialState
  readonly cells: Cells
  /** File of the tenants. */
  readonly file: string
  /** Called when it has the port for clients, before it accepts any. */
  readonly listening: () => void
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

const LOOPBACK = '127.0.0.1'
const MEASURE_MILLISECONDS = 60_000

/** Resolves with the port for clients once it serves; it serves until its process exits. Throws file system errors. */
export async function startInterface(options: InterfaceOptions): Promise<number> {
  const { beginning, cells, file, clock, log } = options
  const { liveMaximum, isolation, bounds, unknownBuckets, controlPort, ...rest } = beginning
  const engines = openEngines({ cells, clock, log, liveMaximum })
  const tenants = await openTenants({
    file,
    keeper: keeperOf(engines, cells),
    openUsage: ({ id }) =>
      openFolderUsage(async () => {
        const isElsewhere = tenants.find(id)?.upstream?.isSourceKept === false
        if (isElsewhere || cells.find(id) === undefined) return { bytes: 0, objects: 0, buckets: 0, files: 0 }
        return cells.measure(id)
      }, clock.now),
    now: clock.now,
  })
  const registry = openRegistry({ isProcessWide: true })
  const metrics = openFrontEndMetrics(registry, {
    tenants,
    engines,
    isolation,
    bounds,
    unknownBuckets: () => unknownBuckets,
  })
  const shared = { ...options, ...rest, tenants }
  const frontEnd = await startFrontEnd({
    ...shared,
    engines,
    metrics,
    // An outdated secret proves nothing.
    secretOf: ({ id, secretFingerprint }) =>
      fingerprintIn(cells, id) === secretFingerprint ? (cells.find(id)?.secretAccessKey ?? undefined) : undefined,
  })
  await startControl({ ...shared, host: LOOPBACK, port: controlPort, metrics: registry })
  void keepMeasured(tenants, options)
  return frontEnd.port
}

const keeperOf = (engines: Engines, cells: Cells): Keeper => ({
  fingerprint: (id) => fingerprintIn(cells, id),
  tell: (tenant, secret) => engines.tell(tenant, secret),
  note: (tenant, secret) => cells.keep(tenant, secret),
  ensureBucket: (id, name) => engines.ensureBucket(id, name),
  fault: (id) => engines.fault(id),
  remove: (id, mayGo) =>
    engines.whileEnded(id, async () => {
      if (!(await mayGo())) return false
      await cells.remove(id)
      return true
    }),
})

/** Measures one tenant after the other, forever. */
async function keepMeasured(tenants: Tenants, { clock, log }: Pick<InterfaceOptions, 'clock' | 'log'>): Promise<never> {
  const outages = new Outages({ log, clock }, 'tenant not measured')
  for (;;) {
    for (const { id, usage } of tenants.all()) await outages.attempt(() => usage.measure(), { tenant: id }, id)
    await clock.sleep(MEASURE_MILLISECONDS)
  }
}
