/** One control plane of a host, regardless of how its programs run: its record, its rounds, its state and its restores.
 *  A driver extends it: its rounds update what runs to match the record. */
import { isDeepStrictEqual } from 'node:util'
import type { AddonGrant, ControlPlaneDesired, ControlPlaneState } from '../../integrations/control-planes/control.ts'
import { StoreAway } from '../../kit/chunks/object-store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { Outages } from '../../kit/sys/outages.ts'
import type { Random } from '../../kit/sys/random.ts'
import { type Credentials, endOf } from './credentials.ts'
import type { PlaneAddons } from './plane-addons.ts'
import type { Asking } from './reading/asking.ts'
import type { ClusterReading, TaskName } from './reading/tasks.ts'
import { type PlaneRecord, writeRecord } from './record.ts'
import { SnapshotKeeper } from './snapshot-keeper.ts'
import type { TakenSnapshot } from './snapshots.ts'
import { Mutex } from '../../kit/sys/mutex.ts'

export interface HostedPlaneOptions<OwnRecord extends PlaneRecord> {
  /** Contains its record, keys and snapshots. */
  readonly folder: string
  readonly record: OwnRecord
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** The part of the state that depends on how its programs run. */
export type ObservedState = Pick<
  ControlPlaneState,
  'endpoint' | 'forNodes' | 'apiServersReady' | 'etcdMembersReady' | 'addons'
>

/** Asks its reader, and the address of an API server that is ready, `https://HOST:PORT`. */
export interface ServingApi {
  readonly url: string
  readonly ask: Asking['ask']
}

export const ROUND_MILLISECONDS = 1_000
/** Interval of the check for certificates that expire soon. */
export const CREDENTIALS_MILLISECONDS = 3_600_000

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export abstract class HostedPlane<OwnRecord extends PlaneRecord> {
  readonly folder: string
  readonly snapshots: SnapshotKeeper
  /** It has been removed completely. */
  isGone = false
  protected abstract readonly addons: PlaneAddons
  protected readonly stopping = new AbortController()
  protected detail = ''
  protected observedAt: Date | undefined
  /** What is known of its programs is old, because they cannot be observed. */
  protected isSilent = false
  protected areObjectsApplied = false
  readonly #options: HostedPlaneOptions<OwnRecord>
  #record: OwnRecord
  #wake = new AbortController()
  readonly #changes = new Mutex()
  #running: Promise<void> = Promise.resolve()

  constructor(options: HostedPlaneOptions<OwnRecord>) {
    const { folder, record, clock, random, log } = options
    this.folder = folder
    this.#options = options
    this.#record = record
    this.snapshots = new SnapshotKeeper({
      folder,
      clock,
      random,
      log,
      controlPlane: record.desired.id,
      take: (into, id) => this.takeSnapshot(into, id),
    })
  }

  /** Updates what runs, by one step or more. Throws what is not as it should be. */
  protected abstract round(): Promise<void>
  /** Pause before the next round. */
  protected abstract pauseMilliseconds(): number
  /** Called after the last round. Ends `snapshots`, and what runs in this process. */
  protected abstract end(): Promise<void>
  protected abstract observed(): ObservedState
  /** Undefined before it has any. */
  protected abstract credentials(): Credentials | undefined
  /** Undefined while no API server is ready. */
  protected abstract serving(): ServingApi | undefined
  /** As `SnapshotKeeper` wants it. */
  protected abstract takeSnapshot(folder: string, id: string): Promise<TakenSnapshot>

  get record(): OwnRecord {
    return this.#record
  }

  start(): void {
    this.#running = this.#keep()
  }

  /** The record stays. */
  async stop(): Promise<void> {
    this.stopping.abort()
    this.wake()
    await this.#running
  }

  /** Durable when this resolves, and applied soon. One change after the other. */
  change(to: (record: OwnRecord) => OwnRecord): Promise<void> {
    return this.#changes.run(async () => {
      const next = to(this.#record)
      if (isDeepStrictEqual(next, this.#record)) return
      await writeRecord(this.folder, next)
      this.#record = next
      this.wake()
    })
  }

  state(): ControlPlaneState {
    const { desired, release, restoreId } = this.#record
    const observed = this.observed()
    const isKnown = this.observedAt !== undefined && !this.isSilent
    return {
      ...observed,
      id: desired.id,
      phase: this.phase(),
      release,
      restoreId,
      certificateAuthority: this.credentials()?.authority ?? null,
      apiServer: !isKnown ? 'unknown' : observed.apiServersReady > 0 ? 'healthy' : 'unhealthy',
      etcdMembersTotal: desired.replicas,
      hasEtcdQuorum: observed.etcdMembersReady > desired.replicas / 2,
      grants: this.addons.grants(this.#record),
      snapshotStore: this.snapshots.state,
      detail: this.detail,
      observedAt: (this.observedAt ?? this.#options.clock.now()).toISOString(),
    }
  }

  /** Undefined while no API server is ready. */
  cluster(): ClusterReading | undefined {
    const serving = this.areObjectsApplied ? this.serving() : undefined
    if (serving === undefined) return undefined
    // The interface defines the types of the arguments and the result.
    const ask = serving.ask as (task: TaskName, ...words: unknown[]) => Promise<never>
    return { ask: async (task, ...words) => ask(task, serving.url, ...words) }
  }

  /** Earliest end of the certificates that are renewed; undefined before it has any. */
  certificatesEndAt(): Date | undefined {
    const credentials = this.credentials()
    return credentials && endOf(credentials)
  }

  /** False for an add-on that cannot run here. */
  async grant(addon: string, { token, ...granted }: AddonGrant): Promise<boolean> {
    if (!this.addons.can(addon)) return false
    await this.addons.writeToken(addon, token)
    await this.change((record) => ({ ...record, addons: { ...record.addons, [addon]: granted } }))
    return true
  }

  /** Starts the next round now. */
  protected wake(): void {
    this.#wake.abort()
  }

  protected phase(): ControlPlaneState['phase'] {
    const { isRemoved, restore, release, desired } = this.#record
    if (isRemoved) return 'stopping'
    if (restore !== null) return 'restoring'
    if (release === null || !this.areObjectsApplied) return 'starting'
    return release === desired.release ? 'running' : 'upgrading'
  }

  /** The failure may pass without another decision. */
  protected isPassing(error: unknown): boolean {
    return error instanceof StoreAway || this.stopping.signal.aborted
  }

  /** Applies the objects of the platform, unless the cluster has them. */
  protected async prepare({ ask, url }: ServingApi, desired: ControlPlaneDesired, hasNodes: boolean): Promise<void> {
    if (this.areObjectsApplied) return
    await ask('prepare', url, desired, hasNodes)
    this.addons.applyAnew()
    this.areObjectsApplied = true
  }

  /** Records that everything runs with that release, and that the restore has ended. */
  protected reached(release: string): Promise<void> {
    return this.change((record) =>
      record.desired.release === release && record.restore?.isWritten !== false
        ? { ...record, release, restoreId: record.restore?.id ?? record.restoreId, restore: null }
        : record,
    )
  }

  /** Creates the next generation from the snapshot of the restore in progress, unless it is written. `write` gets the
   *  record of that generation and the file. A bad snapshot changes nothing: the previous generation starts again. */
  protected async writeRestore(write: (record: OwnRecord, file: string) => Promise<void>): Promise<void> {
    const { restore } = this.#record
    if (restore === null || restore.isWritten) return
    const next = { ...this.#record, generation: this.#record.generation + 1 }
    try {
      await write(next, await this.snapshots.fileOf(restore.snapshotId))
    } catch (error) {
      if (!this.isPassing(error)) await this.change((record) => ({ ...record, restore: null }))
      throw error
    }
    this.areObjectsApplied = false
    const { generation } = next
    await this.change((record) => ({ ...record, generation, restore: { ...restore, isWritten: true } }))
  }

  async #keep(): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.stopping
    const outages = new Outages({ log, clock }, 'control plane not as it should be')
    await this.snapshots.start()
    while (!signal.aborted && !this.isGone) {
      this.#wake = new AbortController()
      try {
        await this.round()
        outages.over()
        this.detail = ''
      } catch (error) {
        if (!signal.aborted) outages.failed(error, { controlPlane: this.#record.desired.id })
        this.detail = textOf(error)
      }
      if (!signal.aborted && !this.isGone) await clock.sleep(this.pauseMilliseconds(), this.#wake.signal)
    }
    await this.end()
  }
}
