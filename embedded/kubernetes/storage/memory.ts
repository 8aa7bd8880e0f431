/** Storage without persistence: for simulations and tests, which never outlive the process. */
import type { Storage } from './storage.ts'

const done = Promise.resolve()

/** Loses everything with its process. */
export const memoryStorage = (): Storage => ({
  load: async () => ({ snapshot: [], revision: 0, records: [] }),
  append: () => done,
  close: () => done,
})
