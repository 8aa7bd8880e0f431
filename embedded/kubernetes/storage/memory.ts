/** Keeps nothing: for simulations and tests, where the process is the world. */
import type { Storage } from './storage.ts'

const done = Promise.resolve()

/** Forgets everything with its process. */
export const memoryStorage = (): Storage => ({
  load: async () => ({ snapshot: [], revision: 0, records: [] }),
  append: () => done,
  close: () => done,
})
