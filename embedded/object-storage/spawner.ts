/** Starts and ends the engine of one tenant in its cell. It has the rights of root where the platform has them, and
 *  reads nothing that came over the network: a place, and what the engine prints while it fails. */
import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { chmod, chown, type FileHandle, lstat, mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Clock } from '../../kit/sys/clock.ts'
import { environment, signalProcess } from '../../kit/sys/process.ts'
import { type Bounds, inGroup } from './cgroup.ts'
import { engineCommand, engineEnvironment, type RootKey, SOCKETS } from './engine.ts'
import { type Cell, HANDED, hasNamespaces, hasUsers, innerPaths, type Isolation, isolated } from './isolation.ts'
import type { UserRange } from '../kit/user-range.ts'

export interface EngineProcess {
  /** Of the engine itself; undefined before it is known. */
  pid(): number | undefined
  /** Paths that its sockets are connected by: theirs may be too long, and these lead to no other one. */
  readonly s3: string
  readonly admin: string
  /** What it began with and does not have any more: its file of users, without which it takes half a minute to answer
   *  wrongly, or a folder, in whose place it goes on with one that nobody else sees. */
  missing(): Promise<string | undefined>
  /** Resolves with how it ended, and when nothing of it runs. */
  readonly ended: Promise<string>
  /** At once. */
  end(): void
  /** Call when it has ended and nobody connects to it. */
  forget(): Promise<void>
}

export interface SpawnerOptions {
  readonly isolation: Isolation
  readonly program: string
  /** Stays empty. */
  readonly empty: string
  readonly clock: Clock
  readonly bounds: Bounds
  /** Whose processes connect to the sockets of engines that have users of their own; undefined where those of this
   *  user do. */
  readonly group: number | undefined
}

export interface Spawner {
  /** Resolves when its sockets are there, which may be a moment before it listens at them: until then they refuse.
   *  `make` has made its folders. Throws when it does not come to that. */
  start(cell: Cell, root: RootKey): Promise<EngineProcess>
}

const SOCKET_MILLISECONDS = 10_000
const POLL_MILLISECONDS = 10
const TEXT_CHARACTERS_MAXIMUM = 1_000
/** Neither is among Node's constants for every platform. */
const O_PATH = 0o10000000
const O_SOCKET = O_PATH | constants.O_NOFOLLOW

export const openSpawner = ({ isolation, program, empty, clock, bounds, group }: SpawnerOptions): Spawner => ({
  async start(cell, root) {
    const run = join(cell.folder, 'run')
    await makeEmpty(run, cell.uid, group)
    const inner = innerPaths(isolation)
    const bound = await bounds.make(basename(cell.folder))
    const command = isolated(isolation, cell, { program, empty }, engineCommand(inner, isolation))
    const [first = '', ...words] = inGroup(bound, command)
    const begun = await inodesOf(cell)
    const handles = hasNamespaces(isolation) ? [] : await openAll(cell, program)
    const child = spawn(first, words, {
      cwd: '/',
      stdio: ['ignore', 'ignore', 'pipe', ...handles.map(({ fd }) => fd)],
      env: { PATH: environment()['PATH'], GOMEMLIMIT: '192MiB', ...engineEnvironment(root) },
    })
    for (const handle of handles) await handle.close()
    let text = ''
    child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
      text = (text + piece).slice(-TEXT_CHARACTERS_MAXIMUM)
    })
    let hasEnded = false
    const ended = new Promise<string>((resolve) => {
      const end = (how: string) => {
        hasEnded = true
        resolve(text.trim() === '' ? how : `${how}: ${text.trim()}`)
      }
      child.once('error', (error) => end(error.message))
      child.once('exit', (code, signal) => end(signal ?? `exit code ${code}`))
    }).finally(() => (bound === undefined ? undefined : bounds.remove(bound).catch(() => {}))) // the next start has it
    let pid: number | undefined
    const end = () => {
      // In a namespace it is the first process, whose end is that of all in it; the one outside ends with it.
      if (pid !== undefined && !hasEnded) signalProcess(pid, 'SIGKILL')
      else child.kill('SIGKILL')
    }
    const opened: FileHandle[] = []
    try {
      const deadline = clock.monotonicMilliseconds() + SOCKET_MILLISECONDS
      for (const name of Object.values(SOCKETS)) opened.push(await whenThere(join(run, name)))
      async function whenThere(path: string): Promise<FileHandle> {
        for (;;) {
          const handle = await openSocket(path, cell.uid)
          if (handle !== undefined) return handle
          if (hasEnded) throw new Error(`the engine does not start: ${await ended}`)
          if (clock.monotonicMilliseconds() > deadline) throw new Error(`the engine makes no socket: ${text}`)
          await clock.sleep(POLL_MILLISECONDS)
        }
      }
    } catch (error) {
      child.kill('SIGKILL')
      for (const handle of opened) await handle.close()
      await ended
      throw error
    }
    pid = hasNamespaces(isolation) && child.pid !== undefined ? await firstChildOf(child.pid) : child.pid
    const [s3 = '', admin = ''] = opened.map(({ fd }) => `/proc/self/fd/${fd}`)
    return {
      pid: () => (hasEnded ? undefined : pid),
      s3,
      admin,
      ended,
      end,
      missing: () => missingOf(cell, run, begun),
      forget: async () => {
        for (const handle of opened) await handle.close()
      },
    }
  },
})

/** What the engine began with and no longer has; undefined when it has everything. */
async function missingOf(
  cell: Cell,
  run: string,
  begun: Awaited<ReturnType<typeof inodesOf>>,
): Promise<string | undefined> {
  const now = await inodesOf(cell)
  const gone = KEPT.find((_name, index) => now[index] === undefined || now[index] !== begun[index])
  return gone ?? ((await inodeOf(join(run, 'users', 'users.json'))) === undefined ? 'users' : undefined)
}

/** Folders of a tenant that outlive an engine. */
const KEPT = ['data', 'versions'] as const
const inodesOf = ({ folder }: Cell) => Promise.all(KEPT.map((name) => inodeOf(join(folder, name))))
const inodeOf = (path: string): Promise<number | undefined> =>
  lstat(path).then(
    ({ ino }) => ino,
    () => undefined,
  )

/** Users and sockets are made anew at each start: nothing of them has to be kept. */
async function makeEmpty(run: string, uid: number | undefined, group: number | undefined): Promise<void> {
  await rm(run, { recursive: true, force: true })
  for (const folder of [run, join(run, 'users')]) {
    await mkdir(folder, 0o700)
    if (uid !== undefined) await chown(folder, uid, uid)
  }
  if (uid === undefined || group === undefined) return
  // Its sockets become the group's.
  await chown(run, uid, group)
  await chmod(run, 0o2710)
}

async function openAll({ folder }: Cell, program: string): Promise<readonly FileHandle[]> {
  const opened: FileHandle[] = []
  for (const name of HANDED) opened.push(await open(name === 'program' ? program : join(folder, name), 'r'))
  return opened
}

/** The socket itself, whatever is put in its place afterwards; undefined before it is there. Throws for what is no
 *  socket of that user. */
export async function openSocket(path: string, uid: number | undefined): Promise<FileHandle | undefined> {
  const handle = await open(path, O_SOCKET).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (handle === undefined) return undefined
  const found = await handle.stat()
  if (found.isSocket() && (uid === undefined || found.uid === uid)) return handle
  await handle.close()
  throw new Error(`${path} is no socket of the engine`)
}

async function firstChildOf(pid: number): Promise<number | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const first = Number(children.trim().split(' ')[0])
  return first > 0 ? first : undefined
}

/** Ends what engines of an earlier run have left, which the kernel may have been too slow for. Only where each has a
 *  user that nobody else of the machine has. */
export async function endLeftEngines(isolation: Isolation, users: UserRange | undefined): Promise<number> {
  if (users === undefined || !hasUsers(isolation)) return 0
  let ended = 0
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const status = await readFile(`/proc/${name}/status`, 'utf8').catch(() => '')
    const uid = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? -1)
    if (uid < users.first || uid >= users.first + users.count) continue
    signalProcess(Number(name), 'SIGKILL')
    ended += 1
  }
  return ended
}
