/** The programs of each control plane run as a separate user when this process is root. The users are ids without an
 *  account on the machine, from a range of this installation. They can read their keys and write their data, and have
 *  no other rights. Files that this process writes as root are in folders that they cannot write. */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import {
  chmod,
  chown,
  copyFile,
  lchown,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ETCD_QUOTA_BYTES } from '../core/flags.ts'
import { TooLong } from '../../kit/http/bounded.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { writeParts } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { isRoot, processId } from '../../kit/sys/process.ts'
import type { Random } from '../../kit/sys/random.ts'
import { tied } from '../../embedded/kit/daemon.ts'
import { MACHINE_REGISTRY, openUserRange, type UserRange } from '../../embedded/kit/user-range.ts'
import type { ControlPlanePrograms } from './programs.ts'

/** Folder for files that a control plane's programs write, besides the data of etcd. */
export const RUN_FOLDER = 'run'
/** Programs for other users are in this folder, which everybody can read and only root can write. */
const SHARED_PROGRAMS = '/var/cache/svccloud/control-planes'
const [READABLE_BY_ALL, PASSABLE_BY_ALL] = [0o005, 0o001]
/** Files that only this process may read. */
const PRIVATE = /^record\.json$|^snapshot-place\.json$|\.log$/
/** A file that is being written. */
const UNFINISHED = /\.new$/
/** Prefix of paths below passed descriptors. */
const DESCRIPTORS = '/proc/self/fd/'
const [OWN_FILE, GROUP_FILE, GROUP_FOLDER, OWN_FOLDER] = [0o600, 0o640, 0o750, 0o700]

/** Limit of the data of an etcd member, which may slightly exceed its quota. */
const TAKEN_BYTES_MAXIMUM = 2 * ETCD_QUOTA_BYTES
const GIBIBYTE = 1024 ** 3
/** Limits for one program, and for all threads of a control plane. */
const LIMITS = ['--core=0', `--data=${6 * GIBIBYTE}`, '--nproc=2048']

/** Undefined when this process is not root, or the machine has too few users. */
export const openUsers = async (
  folder: string,
  parts: { readonly clock: Clock; readonly random: Random },
): Promise<UserRange | undefined> =>
  isRoot()
    ? openUserRange({
        folder,
        registry: MACHINE_REGISTRY,
        ...parts,
        uidMap: await readFile('/proc/self/uid_map', 'utf8'),
      })
    : undefined

/** The command as that user, without a way to gain rights. It is killed when this process exits. */
export const asUser = (uid: number | undefined, command: readonly string[]): readonly string[] =>
  uid === undefined
    ? tied(command)
    : [
        'prlimit',
        ...LIMITS,
        '--',
        'setpriv',
        `--reuid=${uid}`,
        `--regid=${uid}`,
        '--clear-groups',
        '--no-new-privs',
        '--bounding-set=-all',
        '--inh-caps=-all',
        '--pdeathsig',
        'KILL',
        '--',
        ...command,
      ]

/** Lets the programs of the control plane read its files, and write their own. Changes only what is necessary. */
export async function giveFolder(folder: string, uid: number | undefined): Promise<void> {
  const run = join(folder, RUN_FOLDER)
  await makeFolder(run, OWN_FOLDER)
  if (uid === undefined) return
  await own(folder, { uid: 0, gid: uid, mode: GROUP_FOLDER })
  await own(run, { uid, gid: uid, mode: OWN_FOLDER })
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isFile() && !UNFINISHED.test(entry.name))
      await own(
        join(folder, entry.name),
        PRIVATE.test(entry.name) ? { uid: 0, gid: 0, mode: OWN_FILE } : { uid: 0, gid: uid, mode: GROUP_FILE },
      )
}

/** A folder for etcd's data, created if it is missing. Files of another user are given to this one. */
export async function giveData(folder: string, uid: number | undefined): Promise<void> {
  await makeFolder(folder, OWN_FOLDER)
  if (uid === undefined || (await stat(folder)).uid === uid) return
  for (const name of await readdir(folder, { recursive: true })) await lchown(join(folder, name), uid, uid)
  await own(folder, { uid, gid: uid, mode: OWN_FOLDER })
}

/** Copies the file so that the programs can read it, until the copy is removed; `here` is its path relative to the
 *  folder. None of the programs may run meanwhile. */
export async function giveCopy(
  file: string,
  folder: string,
  uid: number | undefined,
): Promise<{ readonly path: string; readonly here: string }> {
  const here = join(RUN_FOLDER, 'restored.db')
  const path = join(folder, here)
  await rm(path, { recursive: true, force: true })
  await copyFile(file, path, constants.COPYFILE_EXCL)
  if (uid !== undefined) await lchown(path, uid, uid)
  return { path, here }
}

/** Copies a file of the programs to a file of this process. The programs can at most change the content meanwhile.
 *  Throws when it is not a regular file, and when it is longer than any file of theirs. */
export async function takeBack(from: string, to: string): Promise<{ sizeBytes: number; sha256: string }> {
  const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!(await source.stat()).isFile()) throw new Error(`${basename(from)} is no file`)
    const partial = `${to}.partial`
    const digest = createHash('sha256')
    let sizeBytes = 0
    const counted = async function* () {
      // without an encoding
      for await (const part of source.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>) {
        sizeBytes += part.length
        if (sizeBytes > TAKEN_BYTES_MAXIMUM) throw new TooLong(TAKEN_BYTES_MAXIMUM)
        digest.update(part)
        yield part
      }
    }
    try {
      await writeParts(partial, counted())
      await rename(partial, to)
    } catch (error) {
      await rm(partial, { force: true })
      throw error
    }
    await rm(from, { force: true })
    return { sizeBytes, sha256: digest.digest('hex') }
  } finally {
    await source.close()
  }
}

interface Ownership {
  readonly uid: number
  readonly gid: number
  readonly mode: number
}

async function own(path: string, { uid, gid, mode }: Ownership): Promise<void> {
  const found = await lstat(path)
  if (found.uid !== uid || found.gid !== gid) await chown(path, uid, gid)
  if ((found.mode & 0o777) !== mode) await chmod(path, mode)
}

/** The same programs at paths where every user can run them. */
export async function shareForUsers(programs: ControlPlanePrograms): Promise<ControlPlanePrograms> {
  const { etcd, etcdutl, tunnel, releases } = programs
  return {
    etcd: await shared(etcd),
    etcdutl: await shared(etcdutl),
    tunnel: tunnel === undefined ? undefined : await shared(tunnel),
    releases: await Promise.all(
      releases.map(async ({ release, apiserver, controllerManager, scheduler }) => ({
        release,
        apiserver: await shared(apiserver),
        controllerManager: await shared(controllerManager),
        scheduler: await shared(scheduler),
      })),
    ),
  }
}

/** A path of the program at which the user can run it. */
export const reachable = async (program: string, uid: number | undefined): Promise<string> =>
  uid === undefined || program.startsWith(DESCRIPTORS) ? program : shared(program)

async function shared(program: string): Promise<string> {
  if (await isForAll(program)) return program
  const folder = join(SHARED_PROGRAMS, basename(dirname(program)))
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const file = join(folder, basename(program))
  const [source, there] = await Promise.all([stat(program), stat(file).catch(() => undefined)])
  const isSame = there !== undefined && there.size === source.size && there.mtimeMs >= source.mtimeMs
  if (isSame && (await isForAll(file))) return file
  const unfinished = `${file}.${processId()}`
  await rm(unfinished, { force: true })
  await link(program, unfinished).catch(() => copyFile(program, unfinished))
  await chmod(unfinished, 0o755)
  await rename(unfinished, file)
  return file
}

async function isForAll(file: string): Promise<boolean> {
  if (((await stat(file)).mode & READABLE_BY_ALL) !== READABLE_BY_ALL) return false
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (((await stat(folder)).mode & PASSABLE_BY_ALL) === 0) return false
    if (folder === dirname(folder)) return true
  }
}
