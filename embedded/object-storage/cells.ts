/** Everything that needs root: records, folders and engines of tenants. The process that serves clients uses it through
 *  orders (`orders.ts`), and names tenants only by their ids. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fingerprintOfSecret } from '../../integrations/object-storage/control.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { isRoot } from '../../kit/sys/process.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import { openBounds } from './cgroup.ts'
import type { RootKey } from './engine.ts'
import { findIsolation, hasUsers, type Isolation, ISOLATION_TEXTS } from './isolation.ts'
import { moveIn } from './move-in.ts'
import { CELL_PARTS, openPlaces, PlaceLost, type Places, type RecordedTenant, type Resident } from './places.ts'
import { type EngineProcess, endLeftEngines, openSpawner, type Spawner } from './spawner.ts'
import { type Measurement, walkBuckets } from './usage.ts'
import { MACHINE_REGISTRY, openUserRange } from '../kit/user-range.ts'

export interface StartedEngine extends EngineProcess {
  /** Key of the engine's administrator for this run. */
  readonly root: RootKey
}

export interface Cells {
  all(): readonly RecordedTenant[]
  find(id: string): RecordedTenant | undefined
  /** Records the tenant with this secret; without a secret it keeps the old one. */
  keep(resident: Resident, secretAccessKey?: string): Promise<void>
  /** Creates the folders of a recorded tenant, and moves in its data of earlier versions. Throws PlaceLost, and other
   *  errors that prevent it. */
  prepare(id: string): Promise<void>
  /** Starts the engine of a recorded tenant, which must not run. Throws when the start fails. */
  start(id: string): Promise<StartedEngine>
  /** Measures what a recorded tenant stores. */
  measure(id: string): Promise<Measurement>
  /** Removes everything of the tenant. Its engine must not run. */
  remove(id: string): Promise<void>
}

/** Fingerprint by which the platform knows a secret; empty when the platform must send it. */
export function fingerprintIn(cells: Pick<Cells, 'find'>, id: string): string {
  const secret = cells.find(id)?.secretAccessKey ?? null
  return secret === null ? '' : fingerprintOfSecret(secret)
}

export interface CellsOptions {
  readonly folder: string
  /** Absolute path of the engine. */
  readonly program: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Registry of the users of all installations of the machine, if it is another folder. */
  readonly registry?: string
  /** Delegated control group; default: that of this process. */
  readonly cgroup?: string | undefined
  /** Replaces the strongest isolation that this machine allows. */
  readonly isolation?: Isolation
}

/** Isolates engines as far as this machine can. Throws file system errors. */
export async function openCells(options: CellsOptions) {
  const { folder, program, clock, random, log, registry = MACHINE_REGISTRY } = options
  await makeFolder(folder, 0o711)
  const uidMap = await readFile('/proc/self/uid_map', 'utf8').catch(() => '')
  const found = isRoot() ? await openUserRange({ folder, registry, uidMap, clock, random }) : undefined
  const [empty, trial] = [join(folder, 'empty'), join(folder, 'trial')]
  for (const path of [empty, trial, ...CELL_PARTS.map((part) => join(trial, part))]) await makeFolder(path, 0o700)
  const isolation =
    options.isolation ?? (await findIsolation({ cell: { folder: trial, uid: found?.first }, program, empty }))
  await rm(trial, { recursive: true })
  const users = hasUsers(isolation) ? found : undefined
  const left = await endLeftEngines(isolation, users)
  const bounds = await openBounds({ parent: options.cgroup })
  log.info(`isolation of object storage: ${ISOLATION_TEXTS[isolation.kind]}; ${bounds.text}`, {
    kind: isolation.kind,
    bounds: bounds.kind,
    ...(users === undefined ? {} : { firstUser: users.first, users: users.count }),
    ...(left === 0 ? {} : { endedProcesses: left }),
  })
  const places = await openPlaces({
    folder,
    users,
    reportUnknown: (folders) => log.warn('folders of tenants without a record of whose they are stay', { folders }),
  })
  const spawner = openSpawner({ isolation, program, empty, clock, bounds, group: users?.first })
  return { isolation, bounds, users, places, cells: cellsOf({ folder, places, spawner, random }) }
}

interface Parts {
  readonly folder: string
  readonly places: Places
  readonly spawner: Spawner
  readonly random: Random
}

const ROOT_KEY_CHARACTERS = 20
const ROOT_SECRET_CHARACTERS = 40

function cellsOf({ folder, places, spawner, random }: Parts): Cells {
  const preparing = new Map<string, Promise<void>>()
  const prepare = (id: string): Promise<void> => {
    const before = preparing.get(id)
    if (before !== undefined) return before
    const now = places.make(id).then((place) => moveIn(folder, place))
    preparing.set(id, now)
    now.catch(() => preparing.delete(id)) // the caller gets the error
    return now
  }
  return {
    all: () => places.all(),
    find: (id) => places.find(id),
    keep: async (resident, secretAccessKey) => void (await places.keep(resident, secretAccessKey)),
    prepare,
    async start(id) {
      await prepare(id)
      const { cell } = await places.make(id)
      const root = {
        accessKeyId: newBase62(random, ROOT_KEY_CHARACTERS),
        secretAccessKey: newBase62(random, ROOT_SECRET_CHARACTERS),
      }
      return { ...(await spawner.start(cell, root)), root }
    },
    async measure(id) {
      await prepare(id)
      const place = places.find(id)
      if (place === undefined) throw new Error('the tenant has no place')
      return walkBuckets({ data: join(place.cell.folder, 'data'), versions: join(place.cell.folder, 'versions') })
    },
    async remove(id) {
      if (places.find(id) === undefined) return
      // Also removes data that have not been moved into its folders yet.
      await prepare(id).catch((error: unknown) => {
        if (!(error instanceof PlaceLost)) throw error
      })
      preparing.delete(id)
      await places.remove(id)
    },
  }
}
