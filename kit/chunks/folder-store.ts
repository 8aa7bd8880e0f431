/** A repository in a folder: each object is the file of its name. */
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { syncToDisk, writeWhole } from '../sys/durable-file.ts'
import { checkObjectName, isObjectName, type ObjectStore, StoreFailed } from './object-store.ts'

const isAbsent = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')

/** The folder, and all above it. */
function* ancestorsOf(folder: string): Generator<string> {
  yield folder
  if (dirname(folder) !== folder) yield* ancestorsOf(dirname(folder))
}

/** A folder that this process may not read is none that it has made. */
const isForbidden = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EACCES'

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
}

/** The first object creates the folder. */
export function openFolderStore(folder: string, { sync = syncToDisk }: FolderStoreOptions = {}): ObjectStore {
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
        for (const kind of KINDS)
          await sync(join(folder, kind)).catch((error: unknown) => {
            if (!isAbsent(error)) throw error
          })
        // Any writer may have made the folders above, and may have been killed before it synced them.
        for (const above of ancestorsOf(resolve(folder)))
          await sync(above).catch((error: unknown) => {
            if (!isAbsent(error) && !isForbidden(error)) throw error
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
