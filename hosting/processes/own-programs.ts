/** Programs of this project that run as users of control planes, who may have no way to its folder: they get that, and
 *  Node.js, as descriptors, and find everything below them. */
import { openSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { nodeBinary } from '../../kit/sys/process.ts'

const PROJECT = join(import.meta.dirname, '../..')
const [PROJECT_DESCRIPTOR, NODE_DESCRIPTOR] = [3, 4]
const [READABLE_BY_ALL, PASSABLE_BY_ALL] = [0o004, 0o005]
/** One of each kind of what they read. */
const [SOURCE, PACKAGE] = ['hosting/processes/own-programs.ts', 'node_modules/zod/package.json']

let handed: readonly number[] | undefined

/** What a program gets as its descriptors from 3 on; open as long as this process. */
export function handedToOwn(): readonly number[] {
  handed ??= [openSync(PROJECT, 'r'), openSync(nodeBinary(), 'r')]
  return handed
}

/** How the program of this project is called where those are handed over; `flags` are of Node.js. */
export const ownProgram = (file: string, words: readonly string[] = [], flags: readonly string[] = []) => [
  `/proc/self/fd/${NODE_DESCRIPTOR}`,
  // A path by descriptors is a link to one that its user cannot go.
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
