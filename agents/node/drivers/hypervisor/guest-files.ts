/** The files of guests on their host: one folder for each guest, files in it for the guest's process, and the guest's
 *  disks. */
import { chmod, lchown, mkdir, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UNFINISHED } from '../../../../kit/sys/durable-file.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { type GuestNetwork, isOvn } from '../network/ovn.ts'
import { writtenFiles } from '../network/user-mode.ts'
import { type CephLogin, guestCephFiles } from '../storage/ceph-pool.ts'
import { backingOf } from '../storage/qcow2-header.ts'
import { readRbdPath } from '../storage/rbd-path.ts'
import { give, guestPath, type GuestUser, type GuestUsers, isUngivable, letRead } from './guest-users.ts'
import type { GuestDefinition, GuestDisk } from './hypervisor.ts'
import { CEPH_FILES } from './qemu-disks.ts'

/** The guest's own folder within its folder, for sockets that QEMU creates later. */
export const OWN_FOLDER = 'own'
/** Modes of files that belong to root and the guest's group. */
const READABLE = 0o640
const WRITABLE = 0o660
const MAKING = 0o770
const READY_MODE = 0o710

export interface GuestFilesOptions {
  /** The guest's folder. */
  readonly folderOf: (name: string) => string
  /** Users of guests. When undefined, guests run as the agent. */
  readonly users: GuestUsers | undefined
  readonly network: GuestNetwork
  /** The Ceph cluster that holds disks; absent when there is none. */
  readonly ceph?: CephLogin | undefined
  readonly log: Logger
}

/** Throws file system errors. Only `prepare` tolerates file systems that cannot give files to a user; then the guest
 *  runs as the agent. */
export class GuestFiles {
  readonly #options: GuestFilesOptions

  constructor(options: GuestFilesOptions) {
    this.#options = options
  }

  /** Lets the guest's process open the disk; returns the disk under the path that the process uses. */
  async diskFor(user: GuestUser | undefined, disk: GuestDisk): Promise<GuestDisk> {
    if (user === undefined || readRbdPath(disk.path) !== undefined) return disk
    const backing = await backingOf(disk.path)
    if (backing !== undefined) await letRead(user, backing)
    await give(disk.path, user.id)
    return {
      ...disk,
      path: guestPath(user, disk.path),
      ...(backing === undefined ? {} : { backing: guestPath(user, backing) }),
    }
  }

  /** Puts the files that the guest's process needs for images of a cluster into its folder. */
  async lendCluster(name: string, disks: readonly GuestDisk[], user: GuestUser | undefined): Promise<void> {
    if (!disks.some(({ path }) => readRbdPath(path) !== undefined)) return
    if (this.#options.ceph === undefined) throw new Error(`the host has no access to the cluster of guest ${name}`)
    for (const [file, text] of Object.entries(await guestCephFiles(this.#options.ceph, CEPH_FILES)))
      await this.lend(name, file, text, user)
  }

  /** Creates the guest's folder; returns its user and the guest as QEMU starts it. If files cannot be given to a user,
   *  as on storage that maps root to nobody, the guest runs as the agent. */
  async prepare(definition: GuestDefinition): Promise<{ user: GuestUser | undefined; started: GuestDefinition }> {
    const { name, boot, interfaces } = definition
    const folder = this.#options.folderOf(name)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const user = this.#options.users?.of(name)
    if (user === undefined) return { user, started: definition }
    try {
      const disks = await Promise.all(definition.disks.map((disk) => this.diskFor(user, disk)))
      const own = join(folder, OWN_FOLDER)
      await rm(own, { recursive: true, force: true })
      await mkdir(own, { mode: 0o700 })
      await lchown(own, user.id, user.id)
      for (const file of isOvn(this.#options.network) ? [] : writtenFiles(interfaces.length))
        await this.lend(name, file, '', user, WRITABLE)
      const read = async (path: string) => {
        const real = await realpath(path)
        await letRead(user, real)
        return guestPath(user, real)
      }
      const started = {
        ...definition,
        disks,
        boot: boot && {
          ...boot,
          kernel: await read(boot.kernel),
          initialRamdisk: await read(boot.initialRamdisk),
        },
      }
      return { user, started }
    } catch (error) {
      if (!isUngivable(error)) throw error
      this.#options.log.warn('guest runs as root: its files cannot be given to a separate user', {
        guest: name,
        error,
      })
      return { user: undefined, started: definition }
    }
  }

  /** Writes a file to the guest's folder that its process can read. */
  async lend(name: string, file: string, content: string | Buffer, user: GuestUser | undefined, mode = READABLE) {
    const path = join(this.#options.folderOf(name), file)
    const unfinished = `${path}${UNFINISHED}`
    await rm(unfinished, { force: true })
    await writeFile(unfinished, content, { mode: 0o600, flag: 'wx' })
    if (user !== undefined) {
      await lchown(unfinished, 0, user.id)
      await chmod(unfinished, mode)
    }
    await rename(unfinished, path)
  }

  /** QEMU creates its sockets when it starts, before the guest runs. After that it may create nothing there. */
  async letMakeFiles(name: string, user: GuestUser | undefined, mayMake: boolean): Promise<void> {
    if (user === undefined) return
    const folder = this.#options.folderOf(name)
    await lchown(folder, 0, user.id)
    await chmod(folder, mayMake ? MAKING : READY_MODE)
  }
}
