/** Whether something is at a path. */
import { access } from 'node:fs/promises'

/** Also false where it cannot be looked at. `mode` is what this process must be able to do, as `constants.X_OK`. */
export const isThere = (path: string, mode?: number): Promise<boolean> =>
  access(path, mode).then(
    () => true,
    () => false,
  )
