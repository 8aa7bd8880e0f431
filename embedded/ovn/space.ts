/** Network namespaces of the cloud. A process holds each namespace, which ends with that process and its guests. Other
 *  processes enter it through that process. An ordinary user has them in a user namespace, in which it is root. All
 *  namespaces of a cloud are in the same user namespace, so that wires can connect them. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Clock } from '../../kit/sys/clock.ts'
import { environment, isRoot, processId } from '../../kit/sys/process.ts'
import { tied } from '../kit/daemon.ts'

const run = promisify(execFile)

export interface Space {
  /** Folder in /proc with its namespaces. */
  readonly folder: string
  readonly pid: number
  /** Resolves when the holding process has exited. */
  readonly ended: Promise<void>
  close(): void
  /** The command line that runs a command in it. */
  command(command: readonly string[]): readonly string[]
  /** Runs shell commands in it. Rejects at the first that fails. */
  run(...lines: readonly string[]): Promise<string>
}

const spaceOf = (pid: number | 'self'): Promise<string> => readlink(`/proc/${pid}/ns/net`).catch(() => '')
const LOOK_MILLISECONDS = 10

/** Prefix of a command that runs in a new namespace. */
export const NEW_SPACE: readonly string[] = [
  'unshare',
  ...(isRoot() ? [] : ['--user', '--map-root-user']),
  '--net',
  '--',
]

const namespacesOf = (pid: number): string => `/proc/${pid}/ns`

/** Prefix of a command that runs in the namespaces of the folder; with `isBeside` in a new network namespace of the
 *  same user namespace. */
const entering = (folder: string, isBeside = false): readonly string[] => {
  const user = isRoot() ? [] : [`--user=${folder}/user`, '--preserve-credentials']
  const words = isBeside ? user : [...user, `--net=${folder}/net`]
  return [...(words.length === 0 ? [] : ['nsenter', ...words, '--']), ...(isBeside ? ['unshare', '--net', '--'] : [])]
}

export interface SpacePlace {
  /** Folder of its processes. */
  readonly folder: string
  /** Folder of its guests. */
  readonly guests?: string
  /** Folder of the guests of all namespaces, whose user namespace a new one joins. */
  readonly neighbours?: string
  /** Namespace whose user namespace it joins. */
  readonly beside?: Space
}

/** Opens the namespace of the guests below the folder, which have outlived its holder; a new one when there is none. */
export async function openSpace(place: SpacePlace, clock: Clock): Promise<Space> {
  const guestProcess = place.guests === undefined ? undefined : await processWithSpace(place.guests)
  const [first = '', ...rest] = [
    ...(guestProcess === undefined ? await newSpace(place) : entering(namespacesOf(guestProcess))),
    ...tied(['sleep', 'infinity']),
  ]
  const path = environment()['PATH']
  const holder = spawn(first, rest, { cwd: place.folder, stdio: 'ignore', env: { PATH: path } })
  const ended = new Promise<void>((resolve) => {
    holder.once('error', () => resolve())
    holder.once('exit', () => resolve())
  })
  const pid = await entered(holder, clock)
  const folder = namespacesOf(pid)
  const command = (words: readonly string[]) => [...entering(folder), ...words]
  return {
    folder,
    pid,
    ended,
    close: () => void holder.kill('SIGKILL'),
    command,
    async run(...lines) {
      const [program = '', ...words] = command(['sh', '-ec', lines.join('\n')])
      return (await run(program, words)).stdout
    },
  }
}

async function newSpace({ beside, neighbours }: SpacePlace): Promise<readonly string[]> {
  if (beside !== undefined) return entering(beside.folder, true)
  const neighbour = neighbours === undefined ? undefined : await processWithSpace(neighbours)
  return neighbour === undefined ? NEW_SPACE : entering(namespacesOf(neighbour), true)
}

/** Returns the process id of the holder once it has entered the namespace. */
async function entered({ pid, exitCode }: ChildProcess, clock: Clock): Promise<number> {
  const own = await spaceOf('self')
  while (pid !== undefined && exitCode === null) {
    const space = await spaceOf(pid)
    if (space === '') break
    // Before that, its user namespace may lack its mapped users.
    if (space !== own && (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')) === 'sleep\n') return pid
    await clock.sleep(LOOK_MILLISECONDS)
  }
  throw new Error('a network namespace could not be made')
}

/** A process below the folder that is in another network namespace than this process. */
async function processWithSpace(folder: string): Promise<number | undefined> {
  const own = await spaceOf('self')
  for (const pid of await processesBelow(folder)) {
    const space = await spaceOf(pid)
    if (space !== '' && space !== own) return pid
  }
  return undefined
}

/** Processes whose working directory is the folder or below it, except for this one. */
export async function processesBelow(folder: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const works = await Promise.all(
    pids.map(async (pid) => ({ pid, folder: await readlink(`/proc/${pid}/cwd`).catch(() => '') })),
  )
  return works
    .filter(({ pid, folder: place }) => pid !== processId() && (place === folder || place.startsWith(`${folder}/`)))
    .map(({ pid }) => pid)
}

/** Makes the link point to the target. */
export async function pointTo(link: string, target: string): Promise<void> {
  await rm(`${link}.new`, { force: true })
  await symlink(target, `${link}.new`)
  await rename(`${link}.new`, link)
}
