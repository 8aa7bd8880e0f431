/** The custom images of a host. Each is one qcow2 file that depends on no other file, with a record that marks it as
 *  complete. Volumes are created as copies, so an image can be removed while they exist. */
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { defined } from '../../../domain/defined.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { syncToDisk, UNFINISHED, writeDurably } from '../../../kit/sys/durable-file.ts'
import { copyServedDisk, flattenDisk, KEYS_PREFIX, makeEmptyDisk } from '../drivers/storage/copy-disk.ts'
import type { DiskServer } from '../drivers/storage/disk-server.ts'
import type { HeldVolume, ServedDisk } from '../drivers/storage/volume-store.ts'
import { Turns } from '../turns.ts'
import {
  IMPORT_LIMITS,
  ImageRefused,
  importImage,
  type ImportSource,
  removeAbandonedImports,
  requireOwnDisk,
} from './import/index.ts'
import { whileRoom } from './room.ts'

export interface HeldImage {
  readonly name: string
  /** Minimum size of a volume that is created from it. */
  readonly sizeGibibytes: number
  /** The version of the template that its data come from; guests boot the kernel of that version. */
  readonly origin?: HeldVolume['source']
  /** Absolute path of the qcow2 file. */
  readonly path: string
}

export interface ImageStore {
  /** Names of all images, including half-created ones. */
  names(): Promise<readonly string[]>
  /** Undefined when it is not here, or only half of it. */
  inspect(name: string): Promise<HeldImage | undefined>
  /** Fetches it completely or not at all; does nothing when it is here. Throws ImageRefused for a file that cannot be
   *  fetched or is not accepted, and DiskTooLarge. */
  import(
    name: string,
    source: ImportSource & { readonly maximumGibibytes?: number },
    signal?: AbortSignal,
  ): Promise<void>
  /** Creates it from a disk that nobody writes to, with the path for programs of this host. Completely or not at all;
   *  does nothing when it is here. Throws ImageRefused for a disk that is too large. */
  make(name: string, from: LocalDisk, signal?: AbortSignal): Promise<void>
  /** Creates it from the data that `write` writes to the qcow2 file. Completely or not at all; does nothing when it is
   *  here. */
  fill(name: string, from: WrittenDisk, signal?: AbortSignal): Promise<void>
  /** Creates it from a disk that another host serves. Completely or not at all; does nothing when it is here. */
  copy(name: string, from: RemoteDisk, signal?: AbortSignal): Promise<void>
  /** Lets another host copy it, until `stopServing` or `remove`, or until the agent exits. */
  serve(name: string, key: string): Promise<void>
  /** Resolves when nobody reads it. Does nothing when it is not served. */
  stopServing(name: string): Promise<void>
  /** Undefined when it is not served. */
  servedAt(name: string): Omit<ServedDisk, 'key'> | undefined
  /** Does nothing when it is not here. */
  remove(name: string): Promise<void>
}

export interface LocalDisk {
  readonly path: string
  readonly origin?: HeldVolume['source']
}
export interface WrittenDisk {
  /** Size of the empty disk that the file contains before `write`. When absent, the file does not exist before `write`.
   */
  readonly sizeGibibytes?: number
  readonly write: (path: string, signal: AbortSignal) => Promise<void>
  readonly origin?: HeldVolume['source'] | undefined
}
export interface RemoteDisk extends ServedDisk {
  readonly origin?: HeldVolume['source']
}

const DISK = '.qcow2'
const RECORD = '.json'
const GIBIBYTE = 1024 ** 3
const Record = z.strictObject({
  name: z.string(),
  sizeGibibytes: z.int(),
  origin: z.strictObject({ name: z.string(), version: z.string() }).optional(),
})

export interface ImageStoreOptions {
  /** Folder of this agent only. */
  readonly folder: string
  /** Serves images to other hosts. */
  readonly server: DiskServer
  readonly clock: Clock
  /** Turns a file into a disk. */
  readonly importDisk?: typeof importImage
}

/** First removes what a killed agent left unfinished. */
export async function openImageStore({
  folder,
  server,
  clock,
  importDisk = importImage,
}: ImageStoreOptions): Promise<ImageStore> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await removeAbandonedImports(folder)
  for (const file of await readdir(folder))
    if (file.endsWith(UNFINISHED) || file.startsWith(KEYS_PREFIX)) await rm(join(folder, file), { recursive: true })
  return new QcowImages({ folder, server, clock, importDisk })
}

interface Writing {
  readonly origin: HeldImage['origin']
  readonly write: (to: string, signal: AbortSignal) => Promise<void>
  readonly signal: AbortSignal | undefined
  /** Waits for its turn among conversions. Work that waits for another host takes no turn, so that it delays nobody. */
  readonly isConversion?: boolean
}

class QcowImages implements ImageStore {
  readonly #folder: string
  readonly #server: DiskServer
  readonly #clock: Clock
  readonly #importDisk: typeof importImage
  /** Turns of conversions. Each reads and writes a disk as fast as the host can. */
  readonly #turns = new Turns()

  constructor({ folder, server, clock, importDisk }: Required<ImageStoreOptions>) {
    this.#folder = folder
    this.#server = server
    this.#clock = clock
    this.#importDisk = importDisk
  }

  async inspect(name: string): Promise<HeldImage | undefined> {
    const text = await readFile(this.#recordOf(name), 'utf8').catch(() => undefined)
    if (text === undefined) return undefined
    // exact optional fields are beyond zod's types
    return { ...(Record.parse(JSON.parse(text)) as Omit<HeldImage, 'path'>), path: this.#diskOf(name) }
  }

  async names(): Promise<readonly string[]> {
    const files = await readdir(this.#folder)
    const suffixes = [RECORD, DISK]
    return [
      ...new Set(
        files.flatMap((file) => suffixes.filter((one) => file.endsWith(one)).map((one) => file.slice(0, -one.length))),
      ),
    ]
  }

  async import(
    name: string,
    { maximumGibibytes, ...source }: Parameters<ImageStore['import']>[1],
    signal?: AbortSignal,
  ): Promise<void> {
    if ((await this.inspect(name)) !== undefined) return
    const maximumVirtualBytes =
      maximumGibibytes === undefined ? IMPORT_LIMITS.maximumVirtualBytes : maximumGibibytes * GIBIBYTE
    const { path, virtualBytes } = await this.#importDisk(source, {
      folder: this.#folder,
      name,
      limits: { ...IMPORT_LIMITS, maximumVirtualBytes },
      clock: this.#clock,
      turns: this.#turns,
      signal,
    })
    await this.#keep(name, path, virtualBytes)
    await rm(join(path, '..'), { recursive: true, force: true })
  }

  make(name: string, { path, origin }: LocalDisk, signal?: AbortSignal): Promise<void> {
    const write = (to: string, stop: AbortSignal) => flattenDisk(path, { to, signal: stop })
    return this.#write(name, { origin, write, signal, isConversion: true })
  }

  fill(name: string, { sizeGibibytes, write, origin }: WrittenDisk, signal?: AbortSignal): Promise<void> {
    const start = async (to: string, stop: AbortSignal) => {
      await rm(to, { force: true }) // left by an earlier attempt
      if (sizeGibibytes !== undefined) await makeEmptyDisk(to, sizeGibibytes)
      await write(to, stop)
    }
    return this.#write(name, { origin, write: start, signal, isConversion: sizeGibibytes === undefined })
  }

  copy(name: string, { origin, ...from }: RemoteDisk, signal?: AbortSignal): Promise<void> {
    const folder = this.#folder
    const write = (to: string, stop: AbortSignal) => copyServedDisk(from, { to, folder, signal: stop })
    return this.#write(name, { origin, write, signal })
  }

  async serve(name: string, key: string): Promise<void> {
    if ((await this.inspect(name)) === undefined) throw new ImageRefused(`Image ${name} is not here.`)
    await this.#server.serve(name, this.#diskOf(name), key)
  }

  stopServing(name: string): Promise<void> {
    return this.#server.stop(name)
  }

  servedAt(name: string): Omit<ServedDisk, 'key'> | undefined {
    return this.#server.at(name)
  }

  async remove(name: string): Promise<void> {
    await this.#server.stop(name)
    for (const file of [this.#recordOf(name), this.#diskOf(name), this.#unfinishedOf(name)])
      await rm(file, { force: true })
    await syncToDisk(this.#folder)
  }

  /** Creates the image. On an error it removes what exists until then. */
  async #write(name: string, { origin, write, signal, isConversion }: Writing): Promise<void> {
    if ((await this.inspect(name)) !== undefined) return
    const unfinished = this.#unfinishedOf(name)
    const room = { folder: this.#folder, clock: this.#clock }
    const work = () => whileRoom(room, signal, (stop) => write(unfinished, stop))
    try {
      await (isConversion === true ? this.#turns.run(work, signal) : work())
      const { virtualBytes } = await requireOwnDisk(unfinished, IMPORT_LIMITS)
      await syncToDisk(unfinished)
      await this.#keep(name, unfinished, virtualBytes, origin)
    } finally {
      await rm(unfinished, { force: true })
    }
  }

  async #keep(name: string, path: string, virtualBytes: number, origin?: HeldImage['origin']): Promise<void> {
    await rename(path, this.#diskOf(name))
    await syncToDisk(this.#folder)
    const sizeGibibytes = Math.ceil(virtualBytes / GIBIBYTE)
    // The record marks the image as complete: written last, removed first.
    await writeDurably(this.#recordOf(name), JSON.stringify({ name, sizeGibibytes, ...defined({ origin }) }))
  }

  #diskOf(name: string): string {
    return join(this.#folder, `${name}${DISK}`)
  }
  #recordOf(name: string): string {
    return join(this.#folder, `${name}${RECORD}`)
  }
  #unfinishedOf(name: string): string {
    return `${this.#diskOf(name)}${UNFINISHED}`
  }
}

/** Simulated images, in memory only. The map is the simulated host's disk: it outlives the agents that use it. */
export function simulatedImages(held = new Map<string, HeldImage>(), host = 'simulated'): ImageStore {
  const served = new Set<string>()
  const put = async (name: string, origin?: HeldImage['origin']): Promise<void> => {
    if (held.has(name)) return
    const path = `/simulated/images/${name}`
    held.set(name, { name, sizeGibibytes: 1, path, ...defined({ origin }) })
  }
  return {
    names: async () => [...held.keys()],
    inspect: async (name) => held.get(name),
    import: (name) => put(name),
    make: (name, { origin }) => put(name, origin),
    async fill(name, { write, origin }, signal = new AbortController().signal) {
      if (held.has(name)) return
      await write(name, signal)
      await put(name, origin)
    },
    copy: (name, { origin }) => put(name, origin),
    serve: async (name) => void served.add(name),
    stopServing: async (name) => void served.delete(name),
    servedAt: (name) => (served.has(name) ? { host, port: 1 } : undefined),
    async remove(name) {
      served.delete(name)
      held.delete(name)
    },
  }
}
