/** All control planes of one host cluster. Accepts as many as fit in the reserved memory, and continues with those of
 *  the last run. */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ControlPlaneDesired, ControlPlaneOffer } from '../../integrations/control-planes/control.ts'
import type { HostedPlanes } from '../core/metrics.ts'
import { beginRestore, changeDesired, earliest, fromPlace, requireOffered, snapshotCalls } from '../core/planes.ts'
import { Refused } from '../core/refused.ts'
import { type ClusterReading, readingCalls } from '../core/reading/tasks.ts'
import { parseQuantity } from '../../integrations/control-planes/quantity.ts'
import { syncToDisk } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { HostNode } from './kinds.ts'
import { type PlaneOptions, PodsPlane } from './plane.ts'
import { newRecord, type PodsRecord, readRecord, writeRecord } from './record.ts'
import { addonsOf, releasesOf } from './settings.ts'
import { BYTES_OF_UPGRADE, bytesOf } from './sizes.ts'

/** The folder contains one folder for each control plane: its record, keys and snapshots. */
export type PodsHostOptions = Omit<PlaneOptions, 'record'>

const MEBIBYTE = 1024 ** 2
const NO_GUESTS = 'control planes in pods have no guests'

/** The control planes, by id. */
class Planes {
  readonly #options: PodsHostOptions
  readonly #byId = new Map<string, PodsPlane>()
  #changing: Promise<unknown> = Promise.resolve()

  constructor(options: PodsHostOptions) {
    this.#options = options
  }

  begin(folder: string, record: PodsRecord): PodsPlane {
    const plane = new PodsPlane({ ...this.#options, folder, record })
    this.#byId.set(record.desired.id, plane)
    plane.start()
    return plane
  }

  all(): readonly PodsPlane[] {
    for (const [id, { isGone }] of this.#byId) if (isGone) this.#byId.delete(id)
    return [...this.#byId.values()]
  }

  find(id: string): PodsPlane | undefined {
    return this.all().find(({ record }) => record.desired.id === id)
  }

  /** Throws Refused when it does not exist or is being removed. */
  known(id: string): PodsPlane {
    const plane = this.find(id)
    if (plane === undefined || plane.record.isRemoved) throw new Refused('gone', 'the control plane')
    return plane
  }

  /** Throws when no API server is ready. */
  cluster(id: string): ClusterReading {
    const cluster = this.known(id).cluster()
    if (cluster === undefined) throw new Error('no API server is ready')
    return cluster
  }

  /** Runs work one at a time, because each control plane counts the memory of the others. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#changing.then(work)
    this.#changing = result.catch(() => undefined) // the caller gets the error
    return result
  }

  reservedBytes(): number {
    return this.all().reduce((sum, { record }) => sum + this.bytesOf(record.desired), 0)
  }

  bytesOf({ replicas }: Pick<ControlPlaneDesired, 'replicas'>): number {
    return bytesOf({ replicas, addons: addonsOf(this.#options.settings) })
  }

  storedMebibytes(): number {
    return this.all().reduce((sum, { record }) => sum + record.desired.replicas * record.storage.mebibytes, 0)
  }

  async create(
    desired: ControlPlaneDesired,
    prepare: (folder: string) => Promise<Pick<PodsRecord, 'restore'>> = async () => ({ restore: null }),
    nodePort: number | null = null,
  ): Promise<PodsPlane> {
    const { folder, settings } = this.#options
    const { memoryBytes } = await roomOf(this.#options)
    if (this.reservedBytes() + this.bytesOf(desired) > memoryBytes)
      throw new Refused('no_capacity', 'The host of control planes has no memory left for another one.')
    const { mebibytes, mebibytesOfOne } = settings.storage
    if (this.storedMebibytes() + desired.replicas * mebibytesOfOne > mebibytes)
      throw new Refused('no_capacity', 'The host of control planes has no storage left for another one.')
    const at = join(folder, desired.id)
    await rm(at, { recursive: true, force: true }) // left over from a request that was not confirmed
    await mkdir(at, { mode: 0o700 })
    const record = { ...newRecord(desired, settings, nodePort), ...(await prepare(at)) }
    await writeRecord(at, record)
    await syncToDisk(folder)
    return this.begin(at, record)
  }
}

/** Memory for control planes, and the number of nodes that provide it. Throws Unavailable. */
async function roomOf({ cluster, settings }: PodsHostOptions): Promise<{ memoryBytes: number; nodeCount: number }> {
  const { nodeSelector, memoryMebibytes } = settings
  const labelSelector = Object.entries(nodeSelector)
    .map(([name, value]) => `${name}=${value}`)
    .join(',')
  const { items } = await cluster.list(HostNode, labelSelector === '' ? {} : { labelSelector })
  const nodes = items.filter(
    ({ spec, status }) =>
      spec.unschedulable !== true &&
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
  )
  const all = nodes.reduce((sum, { status }) => sum + parseQuantity(status?.allocatable?.['memory'] ?? '0'), 0)
  const bytes = memoryMebibytes === undefined ? all : Math.min(all, memoryMebibytes * MEBIBYTE)
  return { memoryBytes: Math.max(0, bytes - BYTES_OF_UPGRADE), nodeCount: nodes.length }
}

/** Continues with the control planes of the last run. */
async function bringBack(planes: Planes, folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const at = join(folder, name)
    const record = await readRecord(at)
    // Not yet confirmed when the last run ended, or completely removed.
    if (record === undefined) await rm(at, { recursive: true, force: true })
    else planes.begin(at, record)
  }
}

/** Serves once this resolves. */
export async function openPodsHost(options: PodsHostOptions): Promise<HostedPlanes> {
  const { folder, settings } = options
  await makeFolder(folder, 0o700)
  const planes = new Planes(options)
  await bringBack(planes, folder)
  const require = (desired: ControlPlaneDesired) => {
    requireOffered(releasesOf(settings), desired)
    if (desired.guest !== undefined) throw new Refused('state_not_allowed', `The host has no guests: ${NO_GUESTS}.`)
  }
  return {
    offer: () => offerOf(options, planes),
    ensure: (desired) =>
      planes.inTurn(async () => {
        require(desired)
        const plane = planes.find(desired.id)
        if (plane === undefined) return (await planes.create(desired)).state()
        return changeDesired(plane, desired)
      }),
    get: async (id) => planes.find(id)?.state(),
    async remove(id) {
      const plane = planes.find(id)
      await plane?.change((record) => ({ ...record, isRemoved: true }))
      return plane === undefined
    },
    async grant(id, addon, grant) {
      if (!(await planes.known(id).grant(addon, grant)))
        throw new Refused('state_not_allowed', `The add-on ${addon} does not run here.`)
    },
    ...snapshotCalls((id) => planes.known(id)),
    recover: (desired, place, restoreId, snapshotId, endpointPort) =>
      planes.inTurn(async () => {
        require(desired)
        const known = planes.find(desired.id)
        if (known !== undefined) return beginRestore(known, restoreId, snapshotId)
        const nodePort = settings.endpoint.type === 'NodePort' ? endpointPort : null
        return (await planes.create(desired, fromPlace(options, place, { restoreId, snapshotId }), nodePort)).state()
      }),
    ...readingCalls((id) => planes.cluster(id)),
    certificatesEndAt: () => earliest(planes.all().flatMap((plane) => plane.certificatesEndAt() ?? [])),
    async stop() {
      await planes.inTurn(async () => {})
      await Promise.all(planes.all().map((plane) => plane.stop()))
    },
  }
}

async function offerOf(options: PodsHostOptions, planes: Planes): Promise<ControlPlaneOffer> {
  const { settings } = options
  return {
    driver: 'pods',
    releases: releasesOf(settings),
    ...(await roomOf(options)),
    reservedBytes: planes.reservedBytes(),
    bytesOfOne: planes.bytesOf({ replicas: 1 }),
    bytesOfThree: planes.bytesOf({ replicas: 3 }),
    etcdBytes: Math.max(0, settings.storage.mebibytes - planes.storedMebibytes()) * MEBIBYTE,
    nodesObstacle: '',
    guests: { obstacle: NO_GUESTS, bytesOfOne: 0, appDomain: '' },
  }
}
