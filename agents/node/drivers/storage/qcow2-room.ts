/** Measures how much of a qcow2 file only its snapshots keep: clusters with a single reference, which comes from a
 *  snapshot. The file is read while a guest may change it, so the result is an estimate. A guest that broke out of QEMU
 *  can have written anything, so every value read here is checked against its bounds. The format is in QEMU's
 *  docs/interop/qcow2.txt. */
import { type FileHandle, open } from 'node:fs/promises'

const HEADER_BYTES = 104
const CLUSTER_BITS = { least: 9, most: 21 } as const
/** External data, extended L2 entries, and all later features. Dirty and corrupt marks are ignored here. */
const OTHER_FEATURES = ~3n
const REFCOUNT_ORDER = 4
const REFCOUNT_BYTES = 2
const ENTRY_BYTES = 8
const OFFSET_MASK = 0x00ff_ffff_ffff_fe00n
const COMPRESSED = 1n << 62n
const SNAPSHOT_BYTES = 40
const SNAPSHOTS_MAXIMUM = 65_536
/** Limit of the tables that are read for one file: enough for 128 GiB of overwritten data. */
const TABLE_BYTES_MAXIMUM = 64 * 1024 * 1024
/** Limit of the L1 table of a snapshot: enough for 64 TiB. */
const ROOT_BYTES_MAXIMUM = 1024 * 1024

interface Snapshot {
  readonly label: string
  readonly rootOffset: number
  readonly rootEntries: number
}

/** In bytes, by the snapshot's name in the disk. Undefined when there is too much to read, or when the file does not
 *  have QEMU's default structure. */
export async function roomBySnapshot(path: string): Promise<ReadonlyMap<string, number> | undefined> {
  const file = await open(path, 'r')
  try {
    return await new Tables(file).measure()
  } catch (error) {
    if (error instanceof TooMuch) return undefined
    throw error
  } finally {
    await file.close()
  }
}

class TooMuch extends Error {}

class Tables {
  readonly #file: FileHandle
  #left = TABLE_BYTES_MAXIMUM
  #clusterBytes = 0
  #refcountTable: Buffer = Buffer.alloc(0)
  readonly #refcountBlocks = new Map<number, Buffer>()

  constructor(file: FileHandle) {
    this.#file = file
  }

  async measure(): Promise<ReadonlyMap<string, number> | undefined> {
    const header = await this.#read(0, HEADER_BYTES)
    const clusterBits = header.readUInt32BE(20)
    const isPlain =
      header.readUInt32BE(4) === 3 &&
      clusterBits >= CLUSTER_BITS.least &&
      clusterBits <= CLUSTER_BITS.most &&
      (header.readBigUInt64BE(72) & OTHER_FEATURES) === 0n &&
      header.readUInt32BE(96) === REFCOUNT_ORDER
    if (!isPlain) return undefined
    this.#clusterBytes = 2 ** clusterBits
    this.#refcountTable = await this.#read(
      Number(header.readBigUInt64BE(48)),
      header.readUInt32BE(56) * this.#clusterBytes,
    )
    const snapshots = await this.#snapshots(Number(header.readBigUInt64BE(64)), header.readUInt32BE(60))
    const room = new Map<string, number>()
    for (const snapshot of snapshots) room.set(snapshot.label, await this.#roomOf(snapshot))
    return room
  }

  async #snapshots(offset: number, count: number): Promise<readonly Snapshot[]> {
    if (count > SNAPSHOTS_MAXIMUM) throw new TooMuch()
    const found: Snapshot[] = []
    let at = offset
    for (let index = 0; index < count; index++) {
      const fixed = await this.#read(at, SNAPSHOT_BYTES)
      const [idBytes, labelBytes, extraBytes] = [fixed.readUInt16BE(12), fixed.readUInt16BE(14), fixed.readUInt32BE(36)]
      const labelAt = at + SNAPSHOT_BYTES + extraBytes + idBytes
      const label = (await this.#read(labelAt, labelBytes)).toString()
      found.push({ label, rootOffset: Number(fixed.readBigUInt64BE(0)), rootEntries: fixed.readUInt32BE(8) })
      at = Math.ceil((labelAt + labelBytes) / ENTRY_BYTES) * ENTRY_BYTES
    }
    return found
  }

  async #roomOf({ rootOffset, rootEntries }: Snapshot): Promise<number> {
    if (rootEntries * ENTRY_BYTES > ROOT_BYTES_MAXIMUM) throw new TooMuch()
    const root = await this.#read(rootOffset, rootEntries * ENTRY_BYTES)
    let bytes = 0
    for (let entry = 0; entry < rootEntries; entry++) {
      const table = Number(root.readBigUInt64BE(entry * ENTRY_BYTES) & OFFSET_MASK)
      // A table with several references is shared, and so are the clusters in it.
      if (table === 0 || (await this.#refcountOf(table)) !== 1) continue
      bytes += this.#clusterBytes + (await this.#dataOf(table))
    }
    return bytes
  }

  async #dataOf(table: number): Promise<number> {
    const entries = await this.#read(table, this.#clusterBytes)
    let bytes = 0
    for (let at = 0; at < entries.length; at += ENTRY_BYTES) {
      const entry = entries.readBigUInt64BE(at)
      const offset = Number(entry & OFFSET_MASK)
      if (offset === 0 || (entry & COMPRESSED) !== 0n) continue
      if ((await this.#refcountOf(offset)) === 1) bytes += this.#clusterBytes
    }
    return bytes
  }

  async #refcountOf(offset: number): Promise<number> {
    const cluster = Math.floor(offset / this.#clusterBytes)
    const perBlock = this.#clusterBytes / REFCOUNT_BYTES
    const at = Math.floor(cluster / perBlock) * ENTRY_BYTES
    if (at + ENTRY_BYTES > this.#refcountTable.length) return 0
    const blockAt = Number(this.#refcountTable.readBigUInt64BE(at) & OFFSET_MASK)
    if (blockAt === 0) return 0
    const known = this.#refcountBlocks.get(blockAt)
    const block = known ?? (await this.#read(blockAt, this.#clusterBytes))
    if (known === undefined) this.#refcountBlocks.set(blockAt, block)
    return block.readUInt16BE((cluster % perBlock) * REFCOUNT_BYTES)
  }

  /** Reads zeros beyond the end of the file. */
  async #read(offset: number, length: number): Promise<Buffer> {
    this.#left -= length
    if (this.#left < 0 || !Number.isSafeInteger(offset)) throw new TooMuch()
    const bytes = Buffer.alloc(length)
    await this.#file.read(bytes, 0, length, offset)
    return bytes
  }
}
