/** Limits of memory and threads for each engine: a separate control group (version 2) if this process can create one,
 *  otherwise only the limits of the process. */
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processId } from '../../kit/sys/process.ts'

const MEBIBYTE = 1024 ** 2
export const ENGINE_MEMORY_BYTES = 512 * MEBIBYTE
/** Limit of the threads and processes of one engine. */
export const ENGINE_THREADS = 1_024
const CONTROLLERS = ['memory', 'pids'] as const

export interface Bounds {
  readonly kind: 'cgroup' | 'rlimit'
  /** Description for people. */
  readonly text: string
  /** Creates a group with limits for one engine; undefined when groups are unavailable. */
  make(name: string): Promise<string | undefined>
  /** Removes the group, in which nothing may run. Does nothing when it does not exist. */
  remove(group: string): Promise<void>
}

export interface BoundsOptions {
  /** Absolute path of a group that was delegated to the platform; default: the group of this process. */
  readonly parent?: string | undefined
  /** Content of /proc/self/cgroup and /proc/self/mountinfo. */
  readonly own?: string
  readonly mounts?: string
}

/** Tries what this machine allows. */
export async function openBounds(options: BoundsOptions = {}): Promise<Bounds> {
  const { parent } = options
  const own = options.own ?? (await readFile('/proc/self/cgroup', 'utf8').catch(() => ''))
  const mounts = options.mounts ?? (await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''))
  try {
    const folder = parent ?? ownGroup(own, mounts)
    const there = (await readFile(join(folder, 'cgroup.controllers'), 'utf8')).trim().split(/\s+/)
    const missing = CONTROLLERS.filter((name) => !there.includes(name))
    if (missing.length > 0) throw new Error(`${folder} has no controller ${missing.join(' and ')}`)
    await writeFile(join(folder, 'cgroup.subtree_control'), CONTROLLERS.map((name) => `+${name}`).join(' '))
    const bounds = groupsBelow(folder)
    const trial = (await bounds.make('trial')) ?? ''
    await bounds.remove(trial)
    return bounds
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return {
      kind: 'rlimit',
      text: `its memory and threads are bounded by limits of the process (no control group: ${reason})`,
      make: async () => undefined,
      remove: async () => {},
    }
  }
}

const groupsBelow = (folder: string): Bounds => ({
  kind: 'cgroup',
  text: `its memory and threads are bounded by a control group below ${folder}`,
  async make(name) {
    const group = join(folder, `svccloud-engine-${processId()}-${name}`)
    await mkdir(group).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
    await writeFile(join(group, 'memory.max'), String(ENGINE_MEMORY_BYTES))
    await writeFile(join(group, 'pids.max'), String(ENGINE_THREADS))
    return group
  },
  remove: (group) =>
    rmdir(group).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    }),
})

/** The folder of the group of this process. */
function ownGroup(own: string, mounts: string): string {
  const path = /^0::(\/.*)$/m.exec(own)?.[1]
  const mount = mounts.split('\n').find((line) => / - cgroup2 /.test(line))
  const [, , , root = '/', point] = mount?.split(' ') ?? []
  if (path === undefined || point === undefined) throw new Error('this machine has none of version 2')
  return join(point, root === '/' ? path : path.replace(root, ''))
}

/** The command in the group: the process joins before it does anything else. */
export const inGroup = (group: string | undefined, command: readonly string[]): readonly string[] =>
  group === undefined ? command : ['sh', '-c', 'echo 0 >"$1/cgroup.procs"; shift; exec "$@"', 'sh', group, ...command]
