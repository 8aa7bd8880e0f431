/** The snapshots of one control plane: takes them, copies them to the object storage, and deletes them. They are first
 *  in the folder and stay there, so that an unavailable store delays no snapshot or restore. Pending work with the
 *  store is in their records, and done as soon as the store answers. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { StoreAway } from '../../kit/chunks/object-store.ts'
import {
  ControlPlaneSnapshot,
  type ControlPlaneState,
  markOf,
  SnapshotPlace,
} from '../../integrations/control-planes/control.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import { Outages } from '../../kit/sys/outages.ts'
import { NotReady } from './not-ready.ts'
import {
  digestOfFile,
  type KeptSnapshot,
  listSnapshots,
  removeSnapshot,
  snapshotFile,
  type TakenSnapshot,
  writeSnapshot,
} from './snapshots.ts'
import {
  fetchKeys,
  fetchSnapshot,
  isStoredIn,
  listStored,
  openSnapshotStore,
  removeStored,
  type SnapshotStore,
  storeKeys,
  storeSnapshot,
} from './stored-snapshots.ts'
import { Mutex } from '../../kit/sys/mutex.ts'

export interface KeeperOptions {
  /** Folder of the control plane. */
  readonly folder: string
  readonly controlPlane: string
  /** Takes a snapshot to the folder of snapshots, as `takeSnapshot` does. Throws NotReady while no member of etcd
   *  serves, or nothing reads it yet. */
  readonly take: (folder: string, id: string) => Promise<TakenSnapshot>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

const TRY_MILLISECONDS = 1_000
const TRIES = 60
/** Limit of waiting for an etcd or a reader that is being started, for example after an upgrade of the host. Shorter
 *  than the operation that takes a snapshot, so that its error says what was missing. */
const READY_MILLISECONDS = 540_000
/** Pause before an unavailable store is tried again. */
const STORE_TRY_MILLISECONDS = 30_000
/** Interval for checking that the store still has its snapshots: a store may be lost and created again. */
const CHECK_MILLISECONDS = 3_600_000
const PLACE_FILE = 'snapshot-place.json'
/** The identity of the control plane. All other keys and certificates derive from these, or may be replaced. */
const KEY_FILES = ['ca', 'front-ca', 'service-account'].flatMap((name) => [`${name}.crt`, `${name}.key`])
const KEPT_FILES = [...KEY_FILES, 'encryption.json']
const NO_PLACE: ControlPlaneState['snapshotStore'] = { mark: '', detail: '' }

/** The record was changed meanwhile, so the work is obsolete. */
class Over extends Error {}

export class SnapshotKeeper {
  readonly folder: string
  readonly #options: KeeperOptions
  readonly #stopping = new AbortController()
  readonly #taking = new Map<string, Promise<void>>()
  /** Changes of records run one after the other. */
  readonly #changes = new Mutex()
  #place: SnapshotPlace | undefined
  #store: SnapshotStore | undefined
  #state = NO_PLACE
  #checkedAt = 0
  #areKeysStored = false
  #wake = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(options: KeeperOptions) {
    this.folder = join(options.folder, 'snapshots')
    this.#options = options
  }

  /** Continues the work of the last run. */
  async start(): Promise<void> {
    // Without the file, the platform sends the place again.
    const place = await readFile(join(this.#options.folder, PLACE_FILE), 'utf8')
      .then((text) => SnapshotPlace.parse(JSON.parse(text)))
      .catch(() => undefined)
    if (place !== undefined && this.#place === undefined) this.#use(place)
    for (const snapshot of await listSnapshots(this.folder)) if (snapshot.phase === 'running') this.#begin(snapshot)
    this.#running = this.#keep()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#wake.abort()
    await Promise.all([this.#running, ...this.#taking.values()])
  }

  get state(): ControlPlaneState['snapshotStore'] {
    return this.#state
  }

  /** Newest last. */
  async list(): Promise<readonly ControlPlaneSnapshot[]> {
    const snapshots = (await listSnapshots(this.folder)).filter(({ isForgotten }) => !isForgotten)
    return snapshots.map((each) => ControlPlaneSnapshot.parse(each))
  }

  /** Takes a snapshot in the background, unless one of that id exists. */
  async take(id: string, release: string): Promise<ControlPlaneSnapshot> {
    const before = (await this.list()).find((each) => each.id === id)
    if (before !== undefined) return before
    const snapshot: KeptSnapshot = {
      id,
      phase: 'running',
      release,
      sizeBytes: 0,
      detail: '',
      isStored: false,
      sha256: null,
      isForgotten: false,
      createdAt: this.#options.clock.now().toISOString(),
    }
    await writeSnapshot(this.folder, snapshot)
    this.#begin(snapshot)
    return ControlPlaneSnapshot.parse(snapshot)
  }

  /** Also copies all snapshots to this place from now on. */
  async setPlace(place: SnapshotPlace): Promise<void> {
    await writeDurably(join(this.#options.folder, PLACE_FILE), JSON.stringify(place))
    this.#use(place)
    this.#wake.abort()
  }

  /** Deletes it from the folder, and from the store as soon as that answers. */
  async remove(id: string): Promise<void> {
    await this.#change(id, async (record) => {
      if (record.sha256 === null || (!record.isStored && this.#store === undefined)) {
        await removeSnapshot(this.folder, id)
        return undefined
      }
      await rm(snapshotFile(this.folder, id), { force: true })
      return { ...record, isForgotten: true }
    })
    this.#wake.abort()
  }

  /** The file of a snapshot, fetched from the store when the folder lacks it. Throws StoreAway, and an error when the
   *  file is damaged. */
  async fileOf(id: string): Promise<string> {
    const record = (await listSnapshots(this.folder)).find((each) => each.id === id)
    const file = snapshotFile(this.folder, id)
    const digest = await digestOfFile(file)
    const isWhole = record?.sha256 === null ? digest !== undefined : digest === record?.sha256
    if (record !== undefined && isWhole) return file
    if (record?.isStored !== true) throw new Error('the file of the snapshot is not what was taken')
    if (this.#store === undefined) throw new StoreAway('the object storage of the snapshot is not known')
    await fetchSnapshot(this.#store, id, file)
    return file
  }

  #use(place: SnapshotPlace): void {
    const { clock, random } = this.#options
    this.#place = place
    this.#store = openSnapshotStore(place, clock, random)
    this.#state = { mark: markOf(place), detail: '' }
    this.#checkedAt = 0
    this.#areKeysStored = false
  }

  /** Writes the record that `to` returns; undefined writes nothing. Does nothing when the snapshot does not exist. */
  #change(id: string, to: (record: KeptSnapshot) => Promise<KeptSnapshot | undefined>): Promise<void> {
    return this.#changes.run(async () => {
      const record = (await listSnapshots(this.folder)).find((each) => each.id === id)
      const next = record && (await to(record))
      if (next !== undefined) await writeSnapshot(this.folder, next)
    })
  }

  #begin({ id }: KeptSnapshot): void {
    if (this.#taking.has(id)) return
    const taking = this.#take(id).finally(() => this.#taking.delete(id))
    this.#taking.set(id, taking)
  }

  async #take(id: string): Promise<void> {
    const { clock, log, take, controlPlane } = this.#options
    let failure: unknown
    const end = clock.monotonicMilliseconds() + READY_MILLISECONDS
    for (let tries = 0; tries < TRIES && !this.#stopping.signal.aborted; ) {
      try {
        const content = await take(this.folder, id)
        await this.#change(id, async (record) => ({ ...record, ...content, phase: 'done' }))
        const isLetGo = (await listSnapshots(this.folder)).every((each) => each.id !== id)
        if (isLetGo) await removeSnapshot(this.folder, id)
        return this.#wake.abort()
      } catch (error) {
        failure = error
        if (!(error instanceof NotReady)) tries++
        else if (clock.monotonicMilliseconds() > end) break
        await clock.sleep(TRY_MILLISECONDS, this.#stopping.signal)
      }
    }
    if (this.#stopping.signal.aborted) return // taken at the next start
    log.warn('no snapshot', { controlPlane, error: failure })
    await this.#change(id, async (record) => ({ ...record, phase: 'failed', detail: textOf(failure) }))
  }

  /** Repeatedly updates the store to match the records. */
  async #keep(): Promise<void> {
    const { clock, log, controlPlane } = this.#options
    const outages = new Outages({ log, clock }, 'snapshots not in the object storage')
    while (!this.#stopping.signal.aborted) {
      this.#wake = new AbortController()
      const place = this.#place
      let detail = ''
      try {
        await this.#round()
        outages.over()
      } catch (error) {
        detail = error instanceof StoreAway ? AWAY : REFUSED
        outages.failed(error, { controlPlane })
      }
      if (place === this.#place && place !== undefined) this.#state = { ...this.#state, detail }
      if (!this.#stopping.signal.aborted) await clock.sleep(STORE_TRY_MILLISECONDS, this.#wake.signal)
    }
  }

  async #round(): Promise<void> {
    const store = this.#store
    if (store === undefined) return
    const now = this.#options.clock.now().getTime()
    const isCheckDue = Math.abs(now - this.#checkedAt) >= CHECK_MILLISECONDS
    for (const snapshot of await listSnapshots(this.folder)) {
      if (this.#stopping.signal.aborted) return
      if (isCheckDue && snapshot.isStored && !(await isStoredIn(store, snapshot.id)))
        await this.#change(snapshot.id, async (record) => ({ ...record, isStored: false }))
    }
    if (isCheckDue) [this.#checkedAt, this.#areKeysStored] = [now, false]
    if (!this.#areKeysStored) this.#areKeysStored = await this.#bringKeys(store)
    for (const snapshot of await listSnapshots(this.folder)) {
      if (this.#stopping.signal.aborted) return
      if (snapshot.isForgotten) await this.#removeEverywhere(store, snapshot)
      else if (snapshot.phase === 'done' && !snapshot.isStored) await this.#bring(store, snapshot)
    }
  }

  /** Returns false before the control plane has keys. */
  async #bringKeys(store: SnapshotStore): Promise<boolean> {
    const { folder } = this.#options
    try {
      const read = async (name: string) => [name, await readFile(join(folder, name), 'utf8')] as const
      await storeKeys(store, Object.fromEntries(await Promise.all(KEPT_FILES.map(read))))
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false // only file errors have this code
      throw error
    }
  }

  async #removeEverywhere(store: SnapshotStore, { id, sizeBytes }: KeptSnapshot): Promise<void> {
    await removeStored(store, { id, sizeBytes })
    await removeSnapshot(this.folder, id)
  }

  async #bring(store: SnapshotStore, { sha256, ...snapshot }: KeptSnapshot): Promise<void> {
    const { id } = snapshot
    if (sha256 === null) return
    try {
      await storeSnapshot(store, { ...snapshot, sha256 }, snapshotFile(this.folder, id), () => {
        if (this.#stopping.signal.aborted || this.#store !== store) throw new Over('the snapshot is not wanted there')
      })
      await this.#change(id, async (record) => ({ ...record, isStored: true }))
    } catch (error) {
      if (!(error instanceof Over)) throw error
    }
  }
}

/** Copies a control plane from the place to an empty folder: its keys, and the records of its snapshots, whose content
 *  is fetched when needed. Returns their ids. Throws StoreFailed and Damaged. */
export async function recoverFolder(
  folder: string,
  place: SnapshotPlace,
  { clock, random }: Pick<KeeperOptions, 'clock' | 'random'>,
): Promise<readonly string[]> {
  const store = openSnapshotStore(place, clock, random)
  const files = await fetchKeys(store)
  for (const name of KEPT_FILES) {
    const content = files[name]
    if (content === undefined) throw new Error(`${name} is not among the keys in the object storage`)
    await writeDurably(join(folder, name), content)
  }
  const known = { phase: 'done', detail: '', isStored: true, isForgotten: false } as const
  const stored = await listStored(store)
  for (const { id, release, createdAt, sizeBytes, sha256 } of stored)
    await writeSnapshot(join(folder, 'snapshots'), { ...known, id, release, createdAt, sizeBytes, sha256 })
  await writeDurably(join(folder, PLACE_FILE), JSON.stringify(place))
  return stored.map(({ id }) => id)
}

const AWAY = 'Snapshots wait for the object storage to answer; they are with the control plane meanwhile.'
const REFUSED = 'The object storage does not take the snapshots; they are with the control plane only.'
const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
