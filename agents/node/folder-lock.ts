/** Waiting for a lock on a folder. */
import { join } from 'node:path'
import type { Clock } from '../../kit/sys/clock.ts'
import { tryLock } from '../../kit/sys/file-lock.ts'

const RETRY_MILLISECONDS = 200

/** Takes the lock, or answers undefined when somebody else has it. The answer gives it back. */
export const tryLockFolder = (folder: string): (() => void) | undefined => tryLock(join(folder, '.lock'))

/** Waits for the lock as long as it takes, or until the signal. */
export async function lockFolder(folder: string, clock: Clock, signal?: AbortSignal): Promise<() => void> {
  for (;;) {
    const unlock = tryLockFolder(folder)
    if (unlock !== undefined) return unlock
    await clock.sleep(RETRY_MILLISECONDS, signal)
    signal?.throwIfAborted()
  }
}
