/** What is in the simulated images: what the disk held that each was made of. Hosts copy from each other only what is
 *  served there, and a file is what it was said to be. */
import type { ImageStore, LocalDisk, RemoteDisk } from '../../agents/node/images/image-store.ts'
import { ImageRefused } from '../../agents/node/images/import/index.ts'

export interface ImageContent {
  /** The disk that it was made of; undefined for a file and for a backup. */
  readonly volume: string | undefined
  readonly content: number
}

/** What the file holds that is fetched; every other one is refused. */
export const FILE = { source_url: 'https://images.example.com/disk.qcow2', checksum_sha256: 'a'.repeat(64) }

export interface ImageContents {
  /** The store of a host, with what its images hold. */
  store(host: string, store: ImageStore): ImageStore
  /** Undefined when the host has no such image. */
  of(host: string, name: string): ImageContent | undefined
  /** What each was asked for when nobody knew yet what it would hold, by account and image. */
  readonly least: Map<string, { readonly volume: string; readonly content: number }>
  /** What a program of the host has written to the path, for the image that is made of it. */
  wrote(host: string, path: string, content: ImageContent): void
}

/** `diskAt`: what the disk holds that a host has at a path. */
export function newImageContents(diskAt: (host: string, path: string) => ImageContent | undefined): ImageContents {
  /** By host and image. */
  const held = new Map<string, ImageContent>()
  const written = new Map<string, ImageContent>()
  /** By host and port. */
  const served = new Map<string, { readonly key: string; readonly host: string; readonly name: string }>()
  const keyOf = (host: string, name: string) => `${host} ${name}`

  const servedBy = (host: string, store: ImageStore): Pick<ImageStore, 'serve' | 'stopServing' | 'servedAt'> => {
    /** Ends with the agent. */
    const ports = new Map<string, number>()
    const stopServing = async (name: string) => {
      await store.stopServing(name)
      served.delete(`${host}:${ports.get(name)}`)
      ports.delete(name)
    }
    return {
      async serve(name, key) {
        await stopServing(name)
        await store.serve(name, key)
        let port = 1
        while (served.has(`${host}:${port}`)) port += 1
        served.set(`${host}:${port}`, { key, host, name })
        ports.set(name, port)
      },
      stopServing,
      servedAt(name) {
        const port = ports.get(name)
        return port === undefined ? undefined : { host, port }
      },
    }
  }

  const madeOn = (host: string, store: ImageStore): Pick<ImageStore, 'import' | 'make' | 'fill' | 'copy'> => {
    /** The first that makes it says what it holds. */
    const making = async (name: string, make: () => Promise<void>, content: () => ImageContent) => {
      const wasHere = (await store.inspect(name)) !== undefined
      await make()
      if (!wasHere) held.set(keyOf(host, name), content())
    }
    return {
      async import(name, source, signal) {
        if (source.checksum !== FILE.checksum_sha256) throw new ImageRefused('The file is another one.')
        return making(
          name,
          () => store.import(name, source, signal),
          () => ({ volume: undefined, content: 0 }),
        )
      },
      async make(name, from: LocalDisk, signal) {
        const content = diskAt(host, from.path)
        if (content === undefined) throw new Error(`there is no disk ${from.path}`)
        return making(
          name,
          () => store.make(name, from, signal),
          () => content,
        )
      },
      fill: (name, from) =>
        making(
          name,
          () => store.fill(name, from),
          () => written.get(keyOf(host, name)) ?? { volume: undefined, content: 0 },
        ),
      async copy(name, from: RemoteDisk, signal) {
        const at = served.get(`${from.host}:${from.port}`)
        const content = at?.key === from.key ? held.get(keyOf(at.host, at.name)) : undefined
        if (content === undefined) throw new Error('nobody serves the image')
        return making(
          name,
          () => store.copy(name, from, signal),
          () => content,
        )
      },
    }
  }

  return {
    store(host, store) {
      const serving = servedBy(host, store)
      return {
        ...store,
        ...madeOn(host, store),
        ...serving,
        async remove(name) {
          await serving.stopServing(name)
          await store.remove(name)
          held.delete(keyOf(host, name))
        },
      }
    },
    least: new Map(),
    of: (host, name) => held.get(keyOf(host, name)),
    wrote: (host, path, content) => void written.set(keyOf(host, path), content),
  }
}
