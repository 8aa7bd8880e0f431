/** The durable storage: a log of batches with checksums, and snapshots that replace old logs.
 *  Files in the folder: `snapshot-R` is the complete state at revision R; `log-R` contains the changes after R. First a
 *  new log is started, then the snapshot is written in the background and renamed, and only then are older files
 *  deleted. So at every moment the newest complete snapshot and the logs from it on contain everything.
 *  All records that wait when the disk becomes free are written and synchronised as one batch. */
import { open, readdir, rename, rm, stat, truncate, mkdir, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { syncToDisk } from '../../../kit/sys/durable-file.ts'
import { tryLock } from '../../../kit/sys/file-lock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { frameOf, recordsIn } from './log-frame.ts'
import type { LoadedState, StateSource, Storage, StoredRecord } from './storage.ts'

const SNAPSHOT_AFTER_BYTES = 64 * 1024 * 1024
const SNAPSHOT_RECORDS_PER_FRAME = 500

export interface LogOptions {
  readonly folder: string
  readonly log: Logger
  /** Size at which a log is replaced by a snapshot. */
  readonly snapshotAfterBytes?: number
  /** Called once when a write has failed; every later one fails too. */
  readonly onFailure?: (error: unknown) => void
}

export interface LogStorage extends Storage {
  /** The source of the state for snapshots; without it there are none. */
  setSource(source: StateSource): void
}

/** Another process writes to this folder. */
export class FolderLocked extends Error {}

/** A log in the middle of the history is damaged; its content is not guessed. */
export class LogDamaged extends Error {}

interface Waiting {
  readonly record: StoredRecord
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Throws when another process uses the folder. */
export async function openLogStorage(options: LogOptions): Promise<LogStorage> {
  const { folder } = options
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const unlock = tryLock(join(folder, 'in-use'))
  if (!unlock) throw new FolderLocked(`the folder ${folder} is in use by another process`)
  return new FolderLog(options, unlock)
}

class FolderLog implements LogStorage {
  readonly #options: LogOptions
  readonly #unlock: () => void
  #file: FileHandle | undefined
  #bytes = 0
  #waiting: Waiting[] = []
  #isWriting = false
  #failure: unknown
  #source: StateSource | undefined
  #snapshotting: Promise<void> | undefined
  #idle: Promise<void> = Promise.resolve()

  constructor(options: LogOptions, unlock: () => void) {
    this.#options = options
    this.#unlock = unlock
  }

  setSource(source: StateSource): void {
    this.#source = source
  }

  async load(): Promise<LoadedState> {
    const { folder, log } = this.#options
    const loaded = await loadFolder(folder, log)
    this.#file = await open(join(folder, `log-${loaded.logRevision}`), 'a', 0o600)
    this.#bytes = (await this.#file.stat()).size
    await syncToDisk(folder)
    return loaded
  }

  append(record: StoredRecord): Promise<void> {
    const appended = new Promise<void>((resolve, reject) => this.#waiting.push({ record, resolve, reject }))
    if (!this.#isWriting) {
      this.#isWriting = true
      // Starts in a microtask: all writes of the same task become one batch.
      this.#idle = Promise.resolve().then(() => this.#writeBatches())
    }
    return appended
  }

  async close(): Promise<void> {
    await this.#idle
    await this.#snapshotting
    await this.#file?.close()
    this.#file = undefined
    this.#unlock()
  }

  async #writeBatches(): Promise<void> {
    const { snapshotAfterBytes = SNAPSHOT_AFTER_BYTES } = this.#options
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      try {
        if (this.#failure !== undefined) throw this.#failure
        await this.#write(batch)
      } catch (error) {
        this.#fail(error, batch)
      }
      if (this.#bytes > snapshotAfterBytes && this.#source && this.#failure === undefined)
        await this.#rotate(this.#source)
    }
    this.#isWriting = false
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    if (!this.#file) throw new Error('the storage was not loaded')
    const frame = Buffer.from(frameOf(batch.map(({ record }) => record)))
    await writeAll(this.#file, frame)
    await this.#file.datasync()
    this.#bytes += frame.length
    for (const { resolve } of batch) resolve()
  }

  /** Starts a new log at the revision of the state, then writes the snapshot without blocking writers. */
  async #rotate(source: StateSource): Promise<void> {
    if (this.#snapshotting) return
    const { folder, log } = this.#options
    const { revision, records } = source()
    const behind = this.#waiting // the state contains them already
    this.#waiting = []
    try {
      if (behind.length > 0) await this.#write(behind)
      const next = await open(join(folder, `log-${revision}`), 'a', 0o600)
      await syncToDisk(folder)
      await this.#file?.close()
      this.#file = next
      this.#bytes = 0
    } catch (error) {
      this.#fail(error, behind)
      return
    }
    this.#snapshotting = writeSnapshot(folder, revision, records)
      .then(() => removeOlder(folder, revision))
      .catch((error: unknown) => log.error('snapshot failed, the logs are kept', { error }))
      .finally(() => (this.#snapshotting = undefined))
  }

  /** After a failed write the content of the disk is unknown, so no later write may succeed. */
  #fail(error: unknown, batch: readonly Waiting[]): void {
    if (this.#failure === undefined) this.#options.onFailure?.(error)
    this.#failure ??= error
    for (const { reject } of batch) reject(error)
  }
}

async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let written = 0; written < bytes.length; ) written += (await file.write(bytes, written)).bytesWritten
}

async function writeSnapshot(folder: string, revision: number, records: Iterable<StoredRecord>): Promise<void> {
  const partial = join(folder, `partial-${revision}`)
  const file = await open(partial, 'w', 0o600)
  try {
    let count = 0
    let chunk: StoredRecord[] = []
    const flush = async () => {
      if (chunk.length > 0) await writeAll(file, Buffer.from(frameOf(chunk)))
      count += chunk.length
      chunk = []
    }
    for (const record of records) {
      chunk.push(record)
      if (chunk.length === SNAPSHOT_RECORDS_PER_FRAME) await flush()
    }
    await flush()
    // The last line marks the snapshot as complete.
    await writeAll(file, Buffer.from(frameOf([{ revision, storageKey: END, key: String(count), object: undefined }])))
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(partial, join(folder, `snapshot-${revision}`))
  await syncToDisk(folder)
}

const END = 'end'

async function removeOlder(folder: string, revision: number): Promise<void> {
  for (const { name, revision: at } of await filesIn(folder))
    if (at < revision) await rm(join(folder, name), { force: true })
}

interface NamedFile {
  readonly name: string
  readonly kind: string
  readonly revision: number
}

async function filesIn(folder: string): Promise<NamedFile[]> {
  return (await readdir(folder)).flatMap((name) => {
    const found = /^(snapshot|log|partial)-(\d+)$/.exec(name)
    return found ? [{ name, kind: found[1] ?? '', revision: Number(found[2]) }] : []
  })
}

async function loadFolder(folder: string, log: Logger): Promise<LoadedState & { readonly logRevision: number }> {
  const files = await filesIn(folder)
  for (const { name } of files.filter(({ kind }) => kind === 'partial')) await rm(join(folder, name), { force: true })
  const newest = Math.max(0, ...files.filter(({ kind }) => kind === 'snapshot').map(({ revision }) => revision))
  const snapshot = newest === 0 ? [] : await readSnapshot(join(folder, `snapshot-${newest}`), newest)
  const logs = files
    .filter(({ kind, revision }) => kind === 'log' && revision >= newest)
    .sort((a, b) => a.revision - b.revision)
  // one list at a time: all of them may exceed the arguments of a call
  let records: StoredRecord[] = []
  for (const [index, { name }] of logs.entries())
    records = records.concat(await readLog(join(folder, name), index === logs.length - 1, log))
  return { snapshot, revision: newest, records, logRevision: logs.at(-1)?.revision ?? newest }
}

interface Line {
  readonly start: number
  /** Undefined when the line is damaged or incomplete. */
  readonly records: readonly StoredRecord[] | undefined
}

/** Size of the pieces in which a file is read. */
const PIECE_BYTES = 16 * 1024 * 1024

/** Reads lines in pieces, because a file may be longer than the longest string or buffer. */
async function* linesOf(path: string): AsyncGenerator<Line> {
  const file = await open(path)
  try {
    const piece = Buffer.allocUnsafe(PIECE_BYTES)
    let start = 0
    let rest = Buffer.alloc(0)
    for (let read = await file.read(piece); read.bytesRead > 0; read = await file.read(piece)) {
      const bytes = Buffer.concat([rest, piece.subarray(0, read.bytesRead)])
      let from = 0
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
        yield { start: start + from, records: recordsIn(bytes.toString('utf8', from, end)) }
        from = end + 1
      }
      start += from
      rest = bytes.subarray(from)
    }
    if (rest.length > 0) yield { start, records: undefined }
  } finally {
    await file.close()
  }
}

async function readSnapshot(path: string, revision: number): Promise<StoredRecord[]> {
  const records: StoredRecord[] = []
  for await (const line of linesOf(path)) {
    if (!line.records) throw new LogDamaged(`${path} is damaged`)
    records.push(...line.records)
  }
  const end = records.pop()
  if (end?.storageKey !== END || end.revision !== revision || Number(end.key) !== records.length)
    throw new LogDamaged(`${path} is not whole`)
  return records
}

/** The end of the last log may be incomplete: a batch that was never acknowledged is cut off. Damage anywhere else is
 *  an error. */
async function readLog(path: string, isLast: boolean, log: Logger): Promise<StoredRecord[]> {
  const records: StoredRecord[] = []
  let tornAt: number | undefined
  for await (const line of linesOf(path)) {
    if (line.records && tornAt === undefined) records.push(...line.records)
    else if (line.records || !isLast) throw new LogDamaged(`${path} is damaged at byte ${tornAt ?? line.start}`)
    else tornAt ??= line.start
  }
  if (tornAt !== undefined) {
    log.info('cut a torn end off the log', { file: path, bytes: (await stat(path)).size - tornAt })
    await truncate(path, tornAt)
  }
  return records
}
