/** The two stores of an embedded cloud belong together. If one is empty while the other is not, it was lost, and is not
 *  created again. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeDurably } from '../kit/sys/durable-file.ts'
import { type DataFolder, StartRefused } from './kit/data-folder.ts'

const STORES = ['postgres', 'kubernetes'] as const
type StoreName = (typeof STORES)[number]
type Folders = Pick<DataFolder, 'root' | StoreName>

/** Whether the store has been initialised. */
const isBegun: Readonly<Record<StoreName, (folder: string) => Promise<boolean>>> = {
  postgres: async (folder) => (await names(join(folder, 'data'))).includes('PG_VERSION'),
  kubernetes: async (folder) => (await names(join(folder, 'log'))).some((name) => /^(log|snapshot)-\d+$/.test(name)),
}

const names = (folder: string): Promise<readonly string[]> => readdir(folder).catch(() => [])
const markerOf = ({ root }: Folders): string => join(root, 'stores')

/** Throws StartRefused when one of the stores of this folder is empty, unless it is among `accepted`. */
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

/** Records that these stores were initialised: from now on they must not be empty. */
export const noteStores = (folder: Folders, used: readonly StoreName[]): Promise<void> =>
  writeDurably(markerOf(folder), `${used.join('\n')}\n`)
