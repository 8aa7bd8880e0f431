/** Starts and kills the engine of one tenant in its cell. It has root's rights if the platform has them. It reads no
 *  data from the network, only a place and the engine's error output. */
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
  /** Process id of the engine itself; undefined until it is known. */
  pid(): number | undefined
  /** Paths for connections to its sockets. The original paths may be too long; these always refer to the same sockets.
   */
  readonly s3: string
  readonly admin: string
  /** Something that it started with and has lost: its file of users, without which it gives wrong answers after half a
   *  minute, or a folder, in whose place it continues with one that nobody else sees. */
  missing(): Promise<string | undefined>
  /** Resolves with the reason when it has exited completely. */
  readonly ended: Promise<string>
  /** Kills it immediately. */
  end(): void
  /** Call it when the engine has exited and has no connections. */
  forget(): Promise<void>
}

export interface SpawnerOptions {
  readonly isolation: Isolation
  readonly program: string
  /** Stays empty. */
  readonly empty: string
  readonly clock: Clock
  readonly bounds: Bounds
  /** Group of the processes that connect to sockets of engines with separate users; undefined when processes of this
   *  user connect. */
  readonly group: number | undefined
}

export interface Spawner {
  /** Resolves when its sockets exist. It may start to listen a moment later; until then connections are refused. `make`
   *  must have created its folders. Throws when the start fails. */
  start(cell: Cell, root: RootKey): Promise<EngineProcess>
}

const SOCKET_MILLISECONDS = 10_000
const POLL_MILLISECONDS = 10
const TEXT_CHARACTERS_MAXIMUM = 1_000
/** Node has no constants for these. */
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
    }).finally(() => (bound === undefined ? undefined : bounds.remove(bound).catch(() => {}))) // the next start uses it
    let pid: number | undefined
    const end = () => {
      // In a namespace this is the first process; all others in the namespace exit with it, and so does the one
      // outside.
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

/** What the engine started with and has lost; undefined when nothing is missing. */
async function missingOf(
  cell: Cell,
  run: string,
  begun: Awaited<ReturnType<typeof inodesOf>>,
): Promise<string | undefined> {
  const now = await inodesOf(cell)
  const missing = FOLDERS.find((_name, index) => now[index] === undefined || now[index] !== begun[index])
  return missing ?? ((await inodeOf(join(run, 'users', 'users.json'))) === undefined ? 'users' : undefined)
}

/** Folders of a tenant that outlive an engine. */
const FOLDERS = ['data', 'versions'] as const
const inodesOf = ({ folder }: Cell) => Promise.all(FOLDERS.map((name) => inodeOf(join(folder, name))))
const inodeOf = (path: string): Promise<number | undefined> =>
  lstat(path).then(
    ({ ino }) => ino,
    () => undefined,
  )

/** Empties the folder of users and sockets, which are created again at each start. */
async function makeEmpty(run: string, uid: number | undefined, group: number | undefined): Promise<void> {
  await rm(run, { recursive: true, force: true })
  for (const folder of [run, join(run, 'users')]) {
    await mkdir(folder, 0o700)
    if (uid !== undefined) await chown(folder, uid, uid)
  }
  if (uid === undefined || group === undefined) return
  // New sockets in it get the group.
  await chown(run, uid, group)
  await chmod(run, 0o2710)
}

async function openAll({ folder }: Cell, program: string): Promise<readonly FileHandle[]> {
  const opened: FileHandle[] = []
  for (const name of HANDED) opened.push(await open(name === 'program' ? program : join(folder, name), 'r'))
  return opened
}

/** A handle of the socket itself, regardless of later replacements of the file; undefined when it does not exist.
 *  Throws when it is not a socket of that user. */
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

/** Kills processes of engines of an earlier run that still exist. Only when each engine has a user that nobody else on
 *  the machine uses. */
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
