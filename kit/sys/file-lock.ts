/** A lock that the operating system releases when its holder dies, in any way: SQLite's lock on a file. */
import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5

/** Takes the lock on the file, which is created when it is missing; undefined when another holder has it, in this
 *  process or another. The returned function releases it. Throws when the file cannot be opened. */
export function tryLock(file: string): (() => void) | undefined {
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    database.exec('pragma locking_mode = exclusive; begin exclusive')
  } catch (error) {
    database.close()
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined
    throw error
  }
  return () => database.close()
}
