/** The two stores of an embedded cloud belong together: one that is empty while the other is not was lost, and is not
 *  begun anew. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeDurably } from '../kit/sys/durable-file.ts'
import { type DataFolder, StartRefused } from './kit/data-folder.ts'

const STORES = ['postgres', 'kubernetes'] as const
type StoreName = (typeof STORES)[number]
type Folders = Pick<DataFolder, 'root' | StoreName>

/** What is there once the store has begun. */
const isBegun: Readonly<Record<StoreName, (folder: string) => Promise<boolean>>> = {
  postgres: async (folder) => (await names(join(folder, 'data'))).includes('PG_VERSION'),
  kubernetes: async (folder) => (await names(join(folder, 'log'))).some((name) => /^(log|snapshot)-\d+$/.test(name)),
}

const names = (folder: string): Promise<readonly string[]> => readdir(folder).catch(() => [])
const markerOf = ({ root }: Folders): string => join(root, 'stores')

/** Throws StartRefused when one of the stores that this folder had is empty, unless it is among `accepted`. */
export async function requireStores(
  folder: Folders,
  used: readonly StoreName[],
  accepted: readonly string[],
): Promise<void> {
  const known = (await readFile(markerOf(folder), 'utf8').catch(() => '')).split('\n')
  for (const name of used.filter((one) => known.includes(one) && !accepted.includes(one)))
    if (!(await isBegun[name](folder[name])))
      throw new StartRefused(
        `${folder[name]} is empty, and the rest of ${folder.root} is not: this cloud had a store there. Put it back. ` +
          `To begin with an empty one, where everything else is kept and reported: SVCCLOUD_ACCEPT_EMPTY_STORE=${name}`,
      )
}

/** Both have begun: from now on neither may be empty. */
export const noteStores = (folder: Folders, used: readonly StoreName[]): Promise<void> =>
  writeDurably(markerOf(folder), `${used.join('\n')}\n`)
