/** Puts engines, door and control together. */
import { readFile, rm } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { isRoot } from '../../kit/sys/process.ts'
import type { Random } from '../../kit/sys/random.ts'
import { startControl } from './control-server.ts'
import { startDoor } from './door.ts'
import { type Engines, openEngines } from './engines.ts'
import { findIsolation, ISOLATION_TEXTS, type Isolation } from './isolation.ts'
import { openDoorMetrics } from './metrics.ts'
import { forgetUsersOfBefore, moveIn, secretOfBefore, unknownBuckets } from './move-in.ts'
import { CELL_PARTS, openPlaces, PlaceLost, type Places } from './places.ts'
import { endLeftEngines, openSpawner } from './spawner.ts'
import { type Keeper, openTenants, type Tenants } from './tenants.ts'
import { openUsage, walkBuckets } from './usage.ts'
import { MACHINE_REGISTRY, openUserRange, type UserRange } from './user-range.ts'

export interface ObjectStorageOptions {
  readonly folder: string
  /** Of the engine, absolute. */
  readonly program: string
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly controlPort: number
  /** Of the platform. */
  readonly token: string
  readonly certificates: { readonly certificate: string; readonly key: string }
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Where the users of all installations of the machine are written down, where that is another folder. */
  readonly registry?: string
}

export interface RunningObjectStorage {
  readonly port: number
  readonly isolation: Isolation
  /** The process of a tenant's engine, while it runs. */
  enginePid(tenantId: string): number | undefined
  stop(): Promise<void>
}

const LOOPBACK = '127.0.0.1'
const MEASURE_MILLISECONDS = 60_000
/** An eighth of the memory is for engines. */
const MEMORY_SHARE = 8
const ENGINE_BYTES = 32 * 1024 ** 2
const ENGINES_MINIMUM = 16
const ENGINES_MAXIMUM = 256

/** Serves once this resolves. Throws what the file system says. */
export async function startObjectStorage(options: ObjectStorageOptions): Promise<RunningObjectStorage> {
  const { folder, clock, random, log } = options
  const stopping = new AbortController()
  await makeFolder(folder, 0o711)
  const { spawner, isolation, places } = await openCells(options)
  const engines = openEngines({
    ...{ places, spawner, clock, random, log },
    moveIn: (place) => moveIn(folder, place),
    liveMaximum: Math.max(
      ENGINES_MINIMUM,
      Math.min(ENGINES_MAXIMUM, Math.floor(totalmem() / MEMORY_SHARE / ENGINE_BYTES)),
    ),
  })
  const tenants = await openTenants({
    file: join(folder, 'tenants.json'),
    keeper: keeperOf(engines, places),
    openUsage: ({ id }) =>
      openUsage(async () => {
        const isElsewhere = tenants.find(id)?.upstream?.isSourceKept === false
        if (isElsewhere || places.find(id) === undefined) return { bytes: 0, objects: 0, buckets: 0, files: 0 }
        const { cell } = await engines.ready(id)
        return walkBuckets({ data: join(cell.folder, 'data'), versions: join(cell.folder, 'versions') })
      }, clock.now),
    now: clock.now,
  })
  const unknown = await settleTenants(folder, tenants, places)
  for (const bucket of unknown) log.warn('a bucket belongs to no tenant, and stays where it is', { bucket })
  const registry = openRegistry({ isProcessWide: true })
  const metrics = openDoorMetrics(registry, { tenants, engines, isolation, unknownBuckets: () => unknown.length })
  const shared = { ...options, tenants }
  const control = await startControl({ ...shared, host: LOOPBACK, port: options.controlPort, metrics: registry })
  const door = await startDoor({
    ...{ ...shared, ...options.certificates, engines, metrics },
    // One that is not the newest proves nothing.
    secretOf: ({ id, secretFingerprint }) =>
      places.fingerprint(id) === secretFingerprint ? (places.find(id)?.secretAccessKey ?? undefined) : undefined,
  })
  const measuring = keepMeasured(tenants, options, stopping.signal)
  return {
    port: door.port,
    isolation,
    enginePid: (id) => engines.pid(id),
    async stop() {
      await Promise.all([door.stop(), control.stop()])
      stopping.abort()
      await Promise.all([engines.stop(), measuring])
    },
  }
}

type CellsOptions = Pick<ObjectStorageOptions, 'folder' | 'program' | 'clock' | 'random' | 'log' | 'registry'>

/** What engines run in, as far as this machine keeps them apart. */
export async function openCells(options: CellsOptions) {
  const { folder, program, clock, random, log, registry = MACHINE_REGISTRY } = options
  const uidMap = await readFile('/proc/self/uid_map', 'utf8').catch(() => '')
  const found = isRoot() ? await openUserRange({ folder, registry, uidMap, clock, random }) : undefined
  const [empty, trial] = [join(folder, 'empty'), join(folder, 'trial')]
  for (const path of [empty, trial, ...CELL_PARTS.map((part) => join(trial, part))]) await makeFolder(path, 0o700)
  const isolation = await findIsolation({ cell: { folder: trial, uid: found?.first }, program, empty })
  await rm(trial, { recursive: true })
  const users: UserRange | undefined = isolation.kind === 'uid' || isolation.kind === 'account' ? found : undefined
  const left = await endLeftEngines(isolation, users)
  log.info(`isolation of object storage: ${ISOLATION_TEXTS[isolation.kind]}`, {
    kind: isolation.kind,
    ...(users === undefined ? {} : { firstUser: users.first, users: users.count }),
    ...(left === 0 ? {} : { endedProcesses: left }),
  })
  const places = await openPlaces({
    ...{ folder, users },
    reportUnknown: (folders) => log.warn('folders of tenants without a record of whose they are stay', { folders }),
  })
  return { spawner: openSpawner({ isolation, program, empty, clock }), isolation, places }
}

const keeperOf = (engines: Engines, places: Places): Keeper => ({
  fingerprint: (id) => places.fingerprint(id),
  tell: (tenant, secret) => engines.tell(tenant, secret),
  note: async (tenant, secret) => void (await places.keep(tenant, secret)),
  ensureBucket: (id, name) => engines.ensureBucket(id, name),
  fault: (id) => engines.fault(id),
  remove: (id, mayGo) =>
    engines.whileEnded(id, async () => {
      if (!(await mayGo())) return false
      if (places.find(id) === undefined) return true
      // What did not come into its folders yet goes too.
      await engines.ready(id).catch((error: unknown) => {
        if (!(error instanceof PlaceLost)) throw error
      })
      await places.remove(id)
      return true
    }),
})

/** Tenants of a version before get a place, with the secret that their engine knew. What is theirs moves when it is
 *  first wanted, and all of it soon. Answers buckets that nobody is known to have. */
async function settleTenants(folder: string, tenants: Tenants, places: Places): Promise<readonly string[]> {
  const here = tenants.all().filter(({ upstream }) => upstream === undefined || upstream.isSourceKept)
  for (const tenant of here)
    if (places.find(tenant.id) === undefined) await places.keep(tenant, await secretOfBefore(folder, tenant))
  await forgetUsersOfBefore(folder, places.all())
  await rm(join(folder, 'sockets'), { force: true })
  return unknownBuckets(
    folder,
    tenants.all().map(({ bucketPrefix }) => bucketPrefix),
  )
}

/** One tenant after the other, for ever. */
async function keepMeasured(
  tenants: Tenants,
  { clock, log }: Pick<ObjectStorageOptions, 'clock' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    for (const { usage } of tenants.all()) {
      if (signal.aborted) return
      await usage.measure().catch((error: unknown) => log.warn('tenant not measured', { error }))
    }
    await clock.sleep(MEASURE_MILLISECONDS, signal)
  }
}
