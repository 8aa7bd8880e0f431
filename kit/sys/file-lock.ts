/** A lock that the system gives back when its holder dies, however it dies: SQLite's lock on a file. */
import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5

/** Takes the lock on the file, which is made when it is missing; undefined when somebody has it, in this process or in
 *  another. The answer gives it back. Throws when the file cannot be opened. */
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
