/** What needs the rights of root: records, folders and engines of tenants. Whoever serves clients has it done by
 *  orders (`orders.ts`), and knows tenants by their ids only. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fingerprintOf } from '../../integrations/object-storage/control.ts'
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
import { type Measured, walkBuckets } from './usage.ts'
import { MACHINE_REGISTRY, openUserRange } from '../kit/user-range.ts'

export interface StartedEngine extends EngineProcess {
  /** Of its administrator, for this run. */
  readonly root: RootKey
}

export interface Cells {
  all(): readonly RecordedTenant[]
  find(id: string): RecordedTenant | undefined
  /** The tenant is recorded from now on, with this secret; without one it keeps what it had. */
  keep(resident: Resident, secretAccessKey?: string): Promise<void>
  /** Folders of a recorded tenant are there, with what it has of before this version. Throws PlaceLost, and what keeps
   *  them from that. */
  prepare(id: string): Promise<void>
  /** Starts the engine of a recorded tenant, which does not run. Throws when it does not come to that. */
  start(id: string): Promise<StartedEngine>
  /** What a recorded tenant stores. */
  measure(id: string): Promise<Measured>
  /** Everything of the tenant goes. Call while its engine does not run. */
  remove(id: string): Promise<void>
}

/** As the platform knows a secret from its fingerprint; empty when the platform has to say it. */
export function fingerprintIn(cells: Pick<Cells, 'find'>, id: string): string {
  const secret = cells.find(id)?.secretAccessKey ?? null
  return secret === null ? '' : fingerprintOf(secret)
}

export interface CellsOptions {
  readonly folder: string
  /** Of the engine, absolute. */
  readonly program: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Where the users of all installations of the machine are written down, where that is another folder. */
  readonly registry?: string
  /** Delegated control group; that of this process when absent. */
  readonly cgroup?: string | undefined
  /** Instead of the strongest isolation that this machine allows. */
  readonly isolation?: Isolation
}

/** As far as this machine keeps engines apart. Throws what the file system says. */
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
    now.catch(() => preparing.delete(id)) // whoever asked hears of it
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
      // What did not come into its folders yet goes too.
      await prepare(id).catch((error: unknown) => {
        if (!(error instanceof PlaceLost)) throw error
      })
      preparing.delete(id)
      await places.remove(id)
    },
  }
}
