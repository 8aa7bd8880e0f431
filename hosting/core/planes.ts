/** The control planes of one host, regardless of how their programs run: accepts as many as there is room for,
 *  continues those of the last run, and answers the calls of the platform. */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type {
  ControlPlaneDesired,
  ControlPlanes,
  ControlPlaneState,
  SnapshotPlace,
} from '../../integrations/control-planes/control.ts'
import { DamagedObject } from '../../kit/chunks/seal.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { syncToDisk } from '../../kit/sys/durable-file.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { HostedPlanes } from './metrics.ts'
import type { HostedPlane } from './plane.ts'
import { readingCalls } from './reading/tasks.ts'
import { type PlaneRecord, writeRecord } from './record.ts'
import { Refused } from './refused.ts'
import { recoverFolder } from './snapshot-keeper.ts'
import { Mutex } from '../../kit/sys/mutex.ts'

/** How one kind of host runs control planes. */
export interface HostDriver<OwnRecord extends PlaneRecord, Plane extends HostedPlane<OwnRecord>> {
  /** Contains one folder for each control plane. */
  readonly folder: string
  readonly clock: Clock
  readonly random: Random
  /** Releases of Kubernetes, newest last. */
  readonly releases: readonly string[]
  /** Why it has no guests of playgrounds, for people; empty when it has. */
  guestsObstacle(): Promise<string>
  /** Throws Refused when there is no room for another control plane. */
  requireRoom(desired: ControlPlaneDesired): Promise<void>
  /** `endpointPort` is the port that clients know; null when there are none yet. Throws Refused. */
  newRecord(desired: ControlPlaneDesired, endpointPort: number | null): Promise<OwnRecord>
  readRecord(folder: string): Promise<OwnRecord | undefined>
  /** Does not start it. */
  open(folder: string, record: OwnRecord): Plane
}

/** A control plane in a folder of the last run. */
export interface StoredPlane<OwnRecord> {
  readonly folder: string
  readonly record: OwnRecord
}

const NOTHING_BEFORE = async (): Promise<Pick<PlaneRecord, 'restore'>> => ({ restore: null })

export class Planes<OwnRecord extends PlaneRecord, Plane extends HostedPlane<OwnRecord>> {
  readonly #driver: HostDriver<OwnRecord, Plane>
  readonly #byId = new Map<string, Plane>()
  /** Each control plane counts the memory of the others, so that they are created one at a time. */
  readonly #changes = new Mutex()

  constructor(driver: HostDriver<OwnRecord, Plane>) {
    this.#driver = driver
  }

  all(): readonly Plane[] {
    for (const [id, { isGone }] of this.#byId) if (isGone) this.#byId.delete(id)
    return [...this.#byId.values()]
  }

  find(id: string): Plane | undefined {
    return this.all().find(({ record }) => record.desired.id === id)
  }

  start({ folder, record }: StoredPlane<OwnRecord>): Plane {
    const plane = this.#driver.open(folder, record)
    this.#byId.set(record.desired.id, plane)
    plane.start()
    return plane
  }

  /** The control planes of the last run, not started. Removes folders of those that were not confirmed, or were
   *  removed. */
  async stored(): Promise<readonly StoredPlane<OwnRecord>[]> {
    const { folder, readRecord } = this.#driver
    const stored: StoredPlane<OwnRecord>[] = []
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue
      const at = join(folder, entry.name)
      const record = await readRecord(at)
      if (record === undefined) await rm(at, { recursive: true, force: true })
      else stored.push({ folder: at, record })
    }
    return stored
  }

  /** The programs of control planes in pods continue to run. */
  async stop(): Promise<void> {
    await this.#changes.run(async () => {})
    await Promise.all(this.all().map((plane) => plane.stop()))
  }

  /** The calls of the platform that are the same for every kind of host. */
  calls(): Omit<HostedPlanes, 'offer' | 'stop'> {
    return {
      ensure: (desired) =>
        this.#changes.run(async () => {
          await this.#judge(desired)
          const plane = this.find(desired.id)
          if (plane !== undefined) return changeDesired(plane, desired)
          return (await this.#create(desired, null, NOTHING_BEFORE)).state()
        }),
      recover: (desired, place, restoreId, snapshotId, endpointPort) =>
        this.#changes.run(async () => {
          await this.#judge(desired)
          const plane = this.find(desired.id)
          if (plane !== undefined) return beginRestore(plane, restoreId, snapshotId)
          const prepare = fromPlace(this.#driver, place, { restoreId, snapshotId })
          return (await this.#create(desired, endpointPort, prepare)).state()
        }),
      get: async (id) => this.find(id)?.state(),
      remove: async (id) => {
        const plane = this.find(id)
        await plane?.change((record) => ({ ...record, isRemoved: true }))
        return plane === undefined
      },
      grant: async (id, addon, grant) => {
        if (!(await this.#known(id).grant(addon, grant)))
          throw new Refused('state_not_allowed', `The add-on ${addon} does not run here.`)
      },
      ...snapshotCalls((id) => this.#known(id)),
      ...readingCalls((id) => {
        const cluster = this.#known(id).cluster()
        if (cluster === undefined) throw new Error('no API server is ready')
        return cluster
      }),
      certificatesEndAt: () => earliest(this.all().flatMap((plane) => plane.certificatesEndAt() ?? [])),
    }
  }

  /** Throws Refused when it does not exist or is being removed. */
  #known(id: string): Plane {
    const plane = this.find(id)
    if (plane === undefined || plane.record.isRemoved) throw new Refused('gone', 'the control plane')
    return plane
  }

  /** Throws Refused for what this host does not run. */
  async #judge({ release, guest }: ControlPlaneDesired): Promise<void> {
    if (!this.#driver.releases.includes(release))
      throw new Refused('state_not_allowed', `Kubernetes ${release} is not offered here.`)
    const obstacle = guest === undefined ? '' : await this.#driver.guestsObstacle()
    if (obstacle !== '') throw new Refused('state_not_allowed', `The host has no guests: ${obstacle}.`)
  }

  /** `prepare` writes its initial state to the folder; returns the pending work for the record. */
  async #create(
    desired: ControlPlaneDesired,
    endpointPort: number | null,
    prepare: (folder: string) => Promise<Pick<PlaneRecord, 'restore'>>,
  ): Promise<Plane> {
    await this.#driver.requireRoom(desired)
    const folder = join(this.#driver.folder, desired.id)
    await rm(folder, { recursive: true, force: true }) // left over from a request that was not confirmed
    await mkdir(folder, { mode: 0o700 })
    const pending = await prepare(folder)
    const record = { ...(await this.#driver.newRecord(desired, endpointPort)), ...pending }
    await writeRecord(folder, record)
    await syncToDisk(this.#driver.folder)
    return this.start({ folder, record })
  }
}

/** A control plane whose etcd can be snapshotted and restored. */
interface SnapshotPlane extends Pick<HostedPlane<PlaneRecord>, 'snapshots' | 'record' | 'state'> {
  change(to: <OwnRecord extends PlaneRecord>(record: OwnRecord) => OwnRecord): Promise<void>
}

const minorOf = (release: string): number => Number(release.split('.')[1])

/** The earliest date; undefined when there are none. */
const earliest = (dates: readonly Date[]): Date | undefined =>
  dates.toSorted((one, other) => one.getTime() - other.getTime())[0]

/** Throws Refused for a change that a control plane does not support. */
function judgeChange(record: PlaneRecord, desired: ControlPlaneDesired): void {
  if (record.isRemoved) throw new Refused('state_not_allowed', 'The control plane is being removed.')
  if (record.desired.replicas !== desired.replicas)
    throw new Refused('state_not_allowed', 'The number of replicas does not change.')
  const [from, to] = [minorOf(record.desired.release), minorOf(desired.release)]
  if (to < from) throw new Refused('state_not_allowed', 'Kubernetes does not go back to an older minor version.')
  if (to > from + 1) throw new Refused('state_not_allowed', 'Kubernetes goes up one minor version at a time.')
}

/** Changes the desired state of an existing control plane. Throws Refused. */
async function changeDesired(plane: SnapshotPlane, desired: ControlPlaneDesired): Promise<ControlPlaneState> {
  judgeChange(plane.record, desired)
  await plane.change((record) =>
    JSON.stringify(record.desired) === JSON.stringify(desired) ? record : { ...record, desired },
  )
  return plane.state()
}

function snapshotCalls(
  known: (id: string) => SnapshotPlane,
): Pick<ControlPlanes, 'snapshot' | 'snapshots' | 'keepSnapshotsIn' | 'removeSnapshot' | 'restore'> {
  return {
    async snapshot(id, snapshotId) {
      const { snapshots, record } = known(id)
      return snapshots.take(snapshotId, record.release ?? record.desired.release)
    },
    snapshots: async (id) => known(id).snapshots.list(),
    keepSnapshotsIn: async (id, place) => known(id).snapshots.setPlace(place),
    removeSnapshot: async (id, snapshotId) => {
      const { snapshots, record } = known(id)
      if (record.restore?.snapshotId === snapshotId)
        throw new Refused('state_not_allowed', 'The snapshot is being restored.')
      await snapshots.remove(snapshotId)
    },
    restore: async (id, restoreId, snapshotId) => beginRestore(known(id), restoreId, snapshotId),
  }
}

/** Does nothing when a restore of that id has started or ended. */
async function beginRestore(plane: SnapshotPlane, restoreId: string, snapshotId: string): Promise<ControlPlaneState> {
  const snapshot = (await plane.snapshots.list()).find((each) => each.id === snapshotId)
  if (snapshot?.phase !== 'done') throw new Refused('not_found', 'snapshot')
  const { restore } = plane.record
  if (restore !== null && restore.id !== restoreId)
    throw new Refused('state_not_allowed', 'Another restore is under way.')
  await plane.change((record) =>
    record.restore !== null || record.restoreId === restoreId
      ? record
      : { ...record, restore: { id: restoreId, snapshotId, isWritten: false } },
  )
  return plane.state()
}

/** Prepares the folder of a new control plane from the contents of the place. */
const fromPlace =
  (
    options: { readonly clock: Clock; readonly random: Random },
    place: SnapshotPlace,
    { restoreId, snapshotId }: Record<'restoreId' | 'snapshotId', string>,
  ) =>
  async (folder: string): Promise<Pick<PlaneRecord, 'restore'>> => {
    try {
      const stored = await recoverFolder(folder, place, options)
      if (!stored.includes(snapshotId)) throw new Refused('not_found', 'snapshot')
    } catch (error) {
      if (error instanceof DamagedObject)
        throw new Refused(
          'state_not_allowed',
          `The object storage does not have what the cluster needs: ${error.message}`,
        )
      throw error
    }
    return { restore: { id: restoreId, snapshotId, isWritten: false } }
  }
