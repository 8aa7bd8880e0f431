/** Locks on folders. */
import { join } from 'node:path'
import type { Clock } from '../../kit/sys/clock.ts'
import { tryLock } from '../../kit/sys/file-lock.ts'

const RETRY_MILLISECONDS = 200

/** Takes the lock; returns undefined when another process has it. Otherwise returns a function that releases it. */
export const tryLockFolder = (folder: string): (() => void) | undefined => tryLock(join(folder, '.lock'))

/** Waits for the lock until the signal aborts. */
export async function lockFolder(folder: string, clock: Clock, signal?: AbortSignal): Promise<() => void> {
  for (;;) {
    const unlock = tryLockFolder(folder)
    if (unlock !== undefined) return unlock
    await clock.sleep(RETRY_MILLISECONDS, signal)
    signal?.throwIfAborted()
  }
}
