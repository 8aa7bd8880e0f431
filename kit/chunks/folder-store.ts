/** A repository in a folder: each object is the file of its name. */
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { syncToDisk, writeWhole } from '../sys/durable-file.ts'
import { checkObjectName, isObjectName, type ObjectStore, StoreFailed } from './object-store.ts'

const hasCode = (error: unknown, codes: readonly string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code))

const isAbsent = (error: unknown): boolean => hasCode(error, ['ENOENT', 'ENOTDIR'])

/** This process has not made what it may not read or write, and some file systems cannot sync a folder. */
const isBeyondSync = (error: unknown): boolean => hasCode(error, ['EACCES', 'EINVAL', 'EROFS', 'ENOTSUP'])

/** The folders above, nearest first, on the file system of the folder; none while the folder does not exist. */
async function* foldersAbove(folder: string, deviceOf: (path: string) => Promise<number>): AsyncGenerator<string> {
  const device = await deviceOf(folder).catch((error: unknown) => {
    if (!isAbsent(error)) throw error
  })
  if (device === undefined) return
  for (let [below, above] = [folder, dirname(folder)]; above !== below; [below, above] = [above, dirname(above)]) {
    if ((await deviceOf(above)) !== device) return
    yield above
  }
}

async function orFail<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    throw new StoreFailed(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** The folders that contain objects. */
const KINDS = ['c', 'm']

interface FolderStoreOptions {
  /** Waits until what was created and renamed in the folder is on the disk. */
  readonly sync?: (folder: string) => Promise<void>
  /** The number of the file system of a folder. */
  readonly deviceOf?: (folder: string) => Promise<number>
}

const deviceOnDisk = async (folder: string): Promise<number> => (await stat(folder)).dev

/** The first object creates the folder. */
export function openFolderStore(
  folder: string,
  { sync = syncToDisk, deviceOf = deviceOnDisk }: FolderStoreOptions = {},
): ObjectStore {
  const pathOf = (name: string): string => {
    checkObjectName(name)
    return join(folder, name)
  }
  return {
    put: (name, bytes) =>
      orFail(`${name} cannot be written`, async () => {
        const path = pathOf(name)
        try {
          await writeWhole(path, bytes)
        } catch (error) {
          if (!isAbsent(error)) throw error
          await mkdir(dirname(path), { recursive: true, mode: 0o700 })
          await writeWhole(path, bytes)
        }
      }),
    settle: () =>
      orFail(`${folder} cannot be synced`, async () => {
        const own = resolve(folder)
        for (const each of [...KINDS.map((kind) => join(own, kind)), own])
          await sync(each).catch((error: unknown) => {
            if (!isAbsent(error)) throw error
          })
        // Any writer may have made the folders above, and may have been killed before it synced them.
        for await (const above of foldersAbove(own, deviceOf))
          await sync(above).catch((error: unknown) => {
            if (!isBeyondSync(error)) throw error
          })
      }),
    get: (name, maximumBytes) =>
      orFail(`${name} cannot be read`, async () => {
        const file = await open(pathOf(name), 'r').catch((error: unknown) => {
          if (isAbsent(error)) return undefined
          throw error
        })
        if (file === undefined) return undefined
        try {
          const { size, mtime } = await file.stat()
          if (size > maximumBytes) throw new Error(`it has ${size} bytes`)
          return { bytes: await file.readFile(), modifiedAt: mtime }
        } finally {
          await file.close()
        }
      }),
    async *list(prefix) {
      const [kind = ''] = prefix.split('/')
      const files = await orFail(`${folder} cannot be listed`, () =>
        readdir(join(folder, kind)).catch((error: unknown) => {
          if (isAbsent(error)) return []
          throw error
        }),
      )
      for (const file of files) {
        const name = `${kind}/${file}`
        if (!isObjectName(name) || !name.startsWith(prefix)) continue // left by a killed writer
        const found = await stat(join(folder, name)).catch(() => undefined)
        if (found !== undefined) yield { name, modifiedAt: found.mtime }
      }
    },
    remove: (name) => orFail(`${name} cannot be removed`, () => rm(pathOf(name), { force: true })),
  }
}
