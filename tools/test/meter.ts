/** Measures the processor time of a program and of everything that it starts: also of processes that outlive their
 *  parents (guests, daemons) where the kernel has control groups and this user can create one. */
import { mkdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../kit/sys/clock.ts'
import { processId } from '../../kit/sys/process.ts'

export interface Meter {
  /** The command that runs another one within the meter. */
  within(command: readonly string[]): readonly string[]
  /** The time used so far, in seconds, and the end of the meter; processes that still run keep its group. */
  close(): Promise<number | undefined>
}

/** Becomes the program, so that signals reach it. */
const ENTER = 'echo $$ >"$0/cgroup.procs" && exec "$@"'

const REMOVALS = 10
const REMOVAL_MILLISECONDS = 200

let meters = 0

/** The folder of the group of this process; undefined where there is none. */
async function ownGroup(): Promise<string | undefined> {
  const read = (path: string) => readFile(path, 'utf8').catch(() => '')
  const mount = /^\S+ (\S+) cgroup2 /m.exec(await read('/proc/self/mounts'))?.[1]
  const path = /^0::(\S+)$/m.exec(await read('/proc/self/cgroup'))?.[1]
  return mount === undefined || path === undefined ? undefined : join(mount, path)
}

/** Clock ticks of Linux in a second. */
const TICKS = 100
/** Fields of `/proc/self/stat` after the name of the program. */
const CHILDREN = { user: 13, system: 14 }
/** Of the programs that have ended, and of all processes that they waited for. */
let childrenSeconds = 0

/** Counts the times that are known when a program has ended: those of processes that their parents waited for. */
const poorMeter: Meter = {
  within: (command) => command,
  async close() {
    const text = await readFile('/proc/self/stat', 'utf8').catch(() => undefined)
    if (text === undefined) return undefined
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const before = childrenSeconds
    childrenSeconds = (Number(fields[CHILDREN.user]) + Number(fields[CHILDREN.system])) / TICKS
    return childrenSeconds - before
  },
}

/** Opens the meter of one program; close it when the program has ended. */
export const openMeter = async (): Promise<Meter> => (await openGroup()) ?? poorMeter

/** Undefined when there are no groups, or none can be created. */
export async function openGroup(): Promise<Meter | undefined> {
  const parent = await ownGroup()
  if (parent === undefined) return undefined
  const group = join(parent, `svccloud-test-${processId()}-${meters++}`)
  const secondsOf = async () => {
    const usage = /^usage_usec (\d+)$/m.exec(await readFile(join(group, 'cpu.stat'), 'utf8'))?.[1]
    return usage === undefined ? undefined : Number(usage) / 1e6
  }
  const isRemoved = () =>
    rmdir(group).then(
      () => true,
      () => false,
    )
  const isMade = await mkdir(group)
    .then(secondsOf)
    .catch(() => undefined)
  if (isMade === undefined) return undefined
  return {
    within: (command) => ['sh', '-c', ENTER, group, ...command],
    async close() {
      const seconds = await secondsOf().catch(() => undefined)
      // Ended processes remain in it for a moment; processes that do not end keep it.
      for (let tries = 0; tries < REMOVALS && !(await isRemoved()); tries++)
        await systemClock.sleep(REMOVAL_MILLISECONDS)
      return seconds
    },
  }
}
