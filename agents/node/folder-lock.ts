/** A lock on a folder that the system gives back when its holder dies, however it dies: SQLite's lock on a file of the folder. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../kit/sys/clock.ts'

const RETRY_MILLISECONDS = 200

/** Takes the lock, or answers undefined when somebody else has it. The answer gives it back. */
export function tryLockFolder(folder: string): (() => void) | undefined {
  const database = new DatabaseSync(join(folder, '.lock'))
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch {
    database.close()
    return undefined
  }
  return () => database.close()
}

/** Waits for the lock as long as it takes, or until the signal. */
export async function lockFolder(folder: string, clock: Clock, signal?: AbortSignal): Promise<() => void> {
  for (;;) {
    const unlock = tryLockFolder(folder)
    if (unlock !== undefined) return unlock
    await clock.sleep(RETRY_MILLISECONDS, signal)
    signal?.throwIfAborted()
  }
}
