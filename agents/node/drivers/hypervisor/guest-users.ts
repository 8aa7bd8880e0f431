/** The users that guests run as when the agent is root. Each guest has its own user, which can open the guest's disks
 *  and files, and nothing of other guests. The id is derived from the guest's name, so that hosts that share disks
 *  agree on it. The folders that contain the disks stay closed to the user. The process inherits these folders as
 *  descriptors and opens its files through them, including files that are created later. */
import { createHash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { chmod, lchown, lstat, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import type { Logger } from '../../../../kit/sys/log.ts'
import { isRoot } from '../../../../kit/sys/process.ts'
import { runProgram } from '../../run-program.ts'

export interface UserRange {
  readonly first: number
  readonly last: number
}

/** User that a guest runs as. Part of the guest's record. */
export const GuestUser = z.strictObject({
  /** User and group. */
  id: z.int(),
  /** Absolute paths of the folders that its process inherits as descriptors, from FIRST_FOLDER on. */
  folders: z.array(z.string()),
})
export type GuestUser = z.infer<typeof GuestUser>

/** After standard input, output and error. */
const FIRST_FOLDER = 3
const KVM = '/dev/kvm'
const TUN = '/dev/net/tun'
const GROUP_ACCESS = 0o060
const OTHERS_ACCESS = 0o006
/** Opens a folder so that files in it can be opened by name, but not listed. */
const O_PATH = 0o10000000
const OPEN_TO_NOBODY_ELSE = 0o600
/** A folder in which everybody who reaches it can open files by name. */
const PASSABLE = 0o711

/** The same name always has the same user. Different names nearly always have different users: among a thousand guests
 *  and 2^28 users, two guests share one with a probability of 1 in 500. */
export function userIn({ first, last }: UserRange, name: string): number {
  const ID_BYTES = 6
  const digest = createHash('sha256').update(name).digest()
  return first + (digest.readUIntBE(0, ID_BYTES) % (last - first + 1))
}

export interface GuestUsers {
  /** User for a guest that is about to start. */
  of(guest: string): GuestUser
  /** The command line that irrevocably becomes the user and then runs the program. */
  command(user: GuestUser, program: string, input: readonly string[]): string[]
  /** Takes the disk back; no guest uses it. */
  release(path: string): Promise<void>
}

export interface GuestUsersOptions {
  /** When undefined, guests run as the agent. */
  readonly range: UserRange | undefined
  /** Holds one folder per guest. */
  readonly folder: string
  /** Folders with files of guests, besides their own folders. */
  readonly folders: () => readonly string[]
  readonly accelerator: 'kvm' | 'tcg'
  /** Guests are connected to tap devices of the host. */
  readonly hasTaps: boolean
  readonly log: Logger
}

/** Undefined when guests run as the agent. If the agent is root, the log reports that. */
export async function openGuestUsers(options: GuestUsersOptions): Promise<GuestUsers | undefined> {
  const { range, folders, folder, accelerator, hasTaps, log } = options
  if (!isRoot()) {
    log.info('guests run as the user of the agent, which is not root')
    return undefined
  }
  if (range === undefined) {
    log.warn('guests run as root: separate users are switched off')
    return undefined
  }
  try {
    const groups = accelerator === 'kvm' ? await kvmGroups() : []
    const users: GuestUsers = {
      of: (guest) => ({ id: userIn(range, guest), folders: [...folders()] }),
      command: ({ id }, program, input) => ['setpriv', ...becoming(id, groups), '--', program, ...input],
      release: (path) => give(path, userIn(range, basename(path))),
    }
    if (hasTaps) await openTun()
    await tryOut(users, folder)
    return users
  } catch (error) {
    log.warn('guests run as root: the host cannot give them separate users', { error })
    return undefined
  }
}

const becoming = (id: number, groups: readonly number[]): string[] => [
  `--reuid=${id}`,
  `--regid=${id}`,
  groups.length === 0 ? '--clear-groups' : `--groups=${groups.join()}`,
  '--inh-caps=-all',
  '--bounding-set=-all',
  '--no-new-privs',
]

/** On most hosts everybody can open the device. A user can only attach to taps that it owns
 *  (Documentation/networking/tuntap.rst of the kernel). */
async function openTun(): Promise<void> {
  const EVERYBODY = 0o666
  if (((await stat(TUN)).mode & OTHERS_ACCESS) !== OTHERS_ACCESS) await chmod(TUN, EVERYBODY)
}

/** Groups that the user needs to reach KVM. Throws when no group reaches it. */
async function kvmGroups(): Promise<readonly number[]> {
  const { mode, gid } = await stat(KVM)
  if ((mode & OTHERS_ACCESS) === OTHERS_ACCESS) return []
  if (gid === 0 || (mode & GROUP_ACCESS) !== GROUP_ACCESS)
    throw new Error(`${KVM} is open to root alone; give it to a group: chgrp kvm ${KVM} && chmod 660 ${KVM}`)
  return [gid]
}

/** Throws when files cannot be given to such a user, or a process cannot become it. */
async function tryOut(users: GuestUsers, folder: string): Promise<void> {
  const trial = await mkdtemp(`${folder}.trial-`)
  try {
    const user = users.of('trial')
    const file = join(trial, 'file')
    await writeFile(file, '')
    await give(file, user.id)
    const [program = '', ...input] = users.command(user, 'true', [])
    await runProgram(program, input)
  } finally {
    await rm(trial, { recursive: true, force: true })
  }
}

/** Gives the file to the user alone. Never follows a link. */
export async function give(path: string, id: number): Promise<void> {
  if (!(await lstat(path)).isFile()) throw new Error(`${path} is not a file`)
  await lchown(path, id, id)
  await chmod(path, OPEN_TO_NOBODY_ELSE)
}

const READABLE_FILE = 0o444
const PASSABLE_FOLDER = 0o111

/** Lets everybody who reaches the folder that the user inherits read the file in it. The file is part of an image,
 *  which may have been copied from a file that only root could read. */
export async function letRead(user: GuestUser, path: string): Promise<void> {
  const root = user.folders.find((folder) => path.startsWith(`${folder}/`))
  if (root === undefined) return
  for (let part = path; part.length >= root.length; part = dirname(part)) {
    const { mode } = await stat(part)
    const wanted = mode | (part === path ? READABLE_FILE : PASSABLE_FOLDER)
    if (wanted !== mode) await chmod(part, wanted)
  }
}

/** Lets users of guests open files in the folder by name. First all existing files get the mode. Does nothing when the
 *  folder is open already, or when the agent is not root. */
export async function letPass(folder: string, fileMode = OPEN_TO_NOBODY_ELSE): Promise<void> {
  const ALL_MODES = 0o777
  if (!isRoot() || ((await stat(folder)).mode & ALL_MODES) === PASSABLE) return
  try {
    for (const entry of await readdir(folder, { withFileTypes: true }))
      if (entry.isFile()) await chmod(join(folder, entry.name), fileMode)
    await chmod(folder, PASSABLE)
  } catch (error) {
    if (!isUngivable(error)) throw error // its disks then stay the agent's
  }
}

/** Whether the file system refuses to give a file to a user, as storage does that maps root to nobody. */
export const isUngivable = (error: unknown): boolean => {
  const { code = '' } = error as NodeJS.ErrnoException // other errors have none
  return UNGIVABLE.includes(code)
}
const UNGIVABLE: readonly string[] = ['EPERM', 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'EROFS']

/** The descriptors that a process of the user inherits. The caller closes them. */
export function openFolders(user: GuestUser | undefined): number[] {
  const files: number[] = []
  try {
    for (const folder of user?.folders ?? []) files.push(openSync(folder, O_PATH))
  } catch (error) {
    for (const file of files) closeSync(file)
    throw error
  }
  return files
}

/** The path that the guest's process uses for the file. It is the plain path when the process has inherited no folder
 *  for it. */
export function guestPath(user: GuestUser | undefined, path: string): string {
  const index = user?.folders.findIndex((folder) => path.startsWith(`${folder}/`)) ?? -1
  const folder = user?.folders[index]
  return folder === undefined ? path : `${inherited(index)}${path.slice(folder.length)}`
}

/** The file that has this path in the guest's process. */
export function hostPath(user: GuestUser | undefined, name: string): string {
  const index = user?.folders.findIndex((_, each) => name.startsWith(`${inherited(each)}/`)) ?? -1
  const folder = user?.folders[index]
  return folder === undefined ? name : `${folder}${name.slice(inherited(index).length)}`
}

const inherited = (index: number): string => `/proc/self/fd/${FIRST_FOLDER + index}`
