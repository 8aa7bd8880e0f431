/** Network namespaces of the cloud: each is held by a process, ends with it and the guests in it, and is entered by the
 *  namespaces of that process. An ordinary user has them in a user namespace, in which it is root; all of a cloud are
 *  in the same one, so that wires lead from one to another. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Clock } from '../../kit/sys/clock.ts'
import { environment, isRoot, processId } from '../../kit/sys/process.ts'
import { tied } from '../kit/daemon.ts'

const run = promisify(execFile)

export interface Space {
  /** The folder with its namespaces, which each process has. */
  readonly folder: string
  readonly pid: number
  /** Resolves when who holds it has ended. */
  readonly ended: Promise<void>
  close(): void
  /** A command in it. */
  command(command: readonly string[]): readonly string[]
  /** Runs lines of a shell in it. Rejects at the first that fails. */
  run(...lines: readonly string[]): Promise<string>
}

const spaceOf = (pid: number | 'self'): Promise<string> => readlink(`/proc/${pid}/ns/net`).catch(() => '')
const LOOK_MILLISECONDS = 10

/** What comes before a command that is to be in a new one. */
export const NEW_SPACE: readonly string[] = [
  'unshare',
  ...(isRoot() ? [] : ['--user', '--map-root-user']),
  '--net',
  '--',
]

const namespacesOf = (pid: number): string => `/proc/${pid}/ns`

/** What comes before a command that is to be in the namespaces of the folder; in the user's only, with `isBeside`. */
const entering = (folder: string, isBeside = false): readonly string[] => {
  const user = isRoot() ? [] : [`--user=${folder}/user`, '--preserve-credentials']
  const words = isBeside ? user : [...user, `--net=${folder}/net`]
  return [...(words.length === 0 ? [] : ['nsenter', ...words, '--']), ...(isBeside ? ['unshare', '--net', '--'] : [])]
}

export interface SpacePlace {
  /** Where its processes work. */
  readonly folder: string
  /** Where its guests work. */
  readonly guests?: string
  /** Where guests of all spaces work, which have the user namespace that a new one joins. */
  readonly neighbours?: string
  /** One whose user namespace it joins. */
  readonly beside?: Space
}

/** The namespace of the guests that work below the folder, which outlived whoever held it; a new one when there is
 *  none. */
export async function openSpace(place: SpacePlace, clock: Clock): Promise<Space> {
  const kept = place.guests === undefined ? undefined : await processWithSpace(place.guests)
  const [first = '', ...rest] = [
    ...(kept === undefined ? await newSpace(place) : entering(namespacesOf(kept))),
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

/** Answers the process of the holder once it is where it is going. */
async function entered({ pid, exitCode }: ChildProcess, clock: Clock): Promise<number> {
  const own = await spaceOf('self')
  while (pid !== undefined && exitCode === null) {
    const space = await spaceOf(pid)
    if (space === '') break
    // Until then its user namespace may lack its users.
    if (space !== own && (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')) === 'sleep\n') return pid
    await clock.sleep(LOOK_MILLISECONDS)
  }
  throw new Error('a network namespace could not be made')
}

/** Of those that work below the folder, one that is in another network namespace than this process. */
async function processWithSpace(folder: string): Promise<number | undefined> {
  const own = await spaceOf('self')
  for (const pid of await processesBelow(folder)) {
    const space = await spaceOf(pid)
    if (space !== '' && space !== own) return pid
  }
  return undefined
}

/** Processes that work in or below the folder, but for this one. */
export async function processesBelow(folder: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const works = await Promise.all(
    pids.map(async (pid) => ({ pid, folder: await readlink(`/proc/${pid}/cwd`).catch(() => '') })),
  )
  return works
    .filter(({ pid, folder: place }) => pid !== processId() && (place === folder || place.startsWith(`${folder}/`)))
    .map(({ pid }) => pid)
}

/** Lets the path lead there from now on. */
export async function pointTo(link: string, target: string): Promise<void> {
  await rm(`${link}.new`, { force: true })
  await symlink(target, `${link}.new`)
  await rename(`${link}.new`, link)
}
