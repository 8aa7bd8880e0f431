/** What a program takes of the processor, with everything that it starts: also with what outlives whoever started it
 *  (guests, daemons) where the kernel has control groups and this user can make one. */
import { mkdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../kit/sys/clock.ts'
import { processId } from '../../kit/sys/process.ts'

export interface Meter {
  /** The command that runs another one within the meter. */
  within(command: readonly string[]): readonly string[]
  /** What has been taken until now, in seconds, and the end of the meter; what still runs keeps its group. */
  close(): Promise<number | undefined>
}

/** Becomes the program, so that signals reach that. */
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

/** A second of the processor, as Linux counts it. */
const TICKS = 100
/** Fields of `/proc/self/stat` after the name of the program. */
const CHILDREN = { user: 13, system: 14 }
/** Of the programs that have ended, and of whatever they have waited for. */
let childrenSeconds = 0

/** Counts what is known of a program when it has ended: what its parents have waited for. */
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

/** Opens the meter of one program, which is closed when that has ended. */
export const openMeter = async (): Promise<Meter> => (await openGroup()) ?? poorMeter

/** Undefined where there are no groups, or none can be made. */
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
      // What has ended is in it for a moment; what does not end keeps it.
      for (let tries = 0; tries < REMOVALS && !(await isRemoved()); tries++)
        await systemClock.sleep(REMOVAL_MILLISECONDS)
      return seconds
    },
  }
}
