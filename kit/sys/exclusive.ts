/** Mutual exclusion of all processes of a user, by a file that exists meanwhile. For commands that run on any system
 *  and any Node; long-lived processes have locks that are released when they die (`file-lock.ts`). */
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from './clock.ts'
import { newBase62, systemRandom } from './random.ts'

/** The work takes milliseconds: a file as old as this was left by a process that was killed. */
const STALE_MILLISECONDS = 10_000
const LOOK_MILLISECONDS = 20
const NAME_LETTERS = 8
const OWNER_ONLY = { file: 0o600, folder: 0o700 }

/** Does the work, which must be short, while the file exists; first waits while it is another process's. Creates the
 *  file's folder when it is missing. Throws the error of the file system. */
export async function exclusively<Result>(
  file: string,
  clock: Pick<Clock, 'now' | 'sleep'>,
  work: () => Promise<Result>,
): Promise<Result> {
  await mkdir(dirname(file), { recursive: true, mode: OWNER_ONLY.folder })
  while (!(await take(file))) {
    await dropStale(file, clock)
    await clock.sleep(LOOK_MILLISECONDS)
  }
  try {
    return await work()
  } finally {
    await rm(file, { force: true })
  }
}

const take = (file: string): Promise<boolean> =>
  writeFile(file, '', { flag: 'wx', mode: OWNER_ONLY.file }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false
      throw error
    },
  )

/** Renamed before it is removed: of several processes that find it, only one succeeds. */
async function dropStale(file: string, clock: Pick<Clock, 'now'>): Promise<void> {
  const found = await stat(file).catch(() => undefined)
  if (found === undefined || clock.now().getTime() - found.mtimeMs < STALE_MILLISECONDS) return
  const aside = `${file}.${newBase62(systemRandom, NAME_LETTERS)}`
  await rename(file, aside).catch(() => {}) // another process was faster
  await rm(aside, { force: true })
}
