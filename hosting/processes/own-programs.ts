/** Programs of this project that run as users of control planes, which may have no access to the project's folder. They
 *  get the folder and Node.js as descriptors, and use paths below these. */
import { openSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { nodeBinary } from '../../kit/sys/process.ts'

const PROJECT = join(import.meta.dirname, '../..')
const [PROJECT_DESCRIPTOR, NODE_DESCRIPTOR] = [3, 4]
const [READABLE_BY_ALL, PASSABLE_BY_ALL] = [0o004, 0o005]
/** One example of each kind of file that they read. */
const [SOURCE, PACKAGE] = ['hosting/processes/own-programs.ts', 'node_modules/zod/package.json']

let handed: readonly number[] | undefined

/** Descriptors for a program, from 3 on; open as long as this process runs. */
export function handedToOwn(): readonly number[] {
  handed ??= [openSync(PROJECT, 'r'), openSync(nodeBinary(), 'r')]
  return handed
}

/** Command line for a program of this project that gets these descriptors; `flags` are for Node.js. */
export const ownProgram = (file: string, words: readonly string[] = [], flags: readonly string[] = []) => [
  `/proc/self/fd/${NODE_DESCRIPTOR}`,
  // A path through a descriptor is a symbolic link to a path that the user cannot access.
  '--preserve-symlinks',
  '--preserve-symlinks-main',
  ...flags,
  `/proc/self/fd/${PROJECT_DESCRIPTOR}/${file}`,
  ...words,
]

/** Why other users cannot run programs of this project, for people; undefined where they can. */
export async function ownProgramsObstacle(): Promise<string | undefined> {
  const paths = [PROJECT, ...[SOURCE, PACKAGE].map((path) => join(PROJECT, path))]
  const modes = await Promise.all(paths.map(async (path) => stat(path)))
  const isOpen = modes.every((each) => {
    const needed = each.isDirectory() ? PASSABLE_BY_ALL : READABLE_BY_ALL
    return (each.mode & needed) === needed
  })
  if (isOpen) return undefined
  const command = `chmod -R go+rX ${PROJECT}`
  return `its programs run as users who may not read ${PROJECT}: the operator runs ${command}, and starts again`
}
