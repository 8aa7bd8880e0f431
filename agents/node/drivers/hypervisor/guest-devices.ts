/** Devices of running guests. Disks and interfaces are plugged in, grown, snapshotted, and returned to the host once
 *  the guest has released them. */
import { Unavailable } from '../../../../domain/problem.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { hasOpen } from '../../host.ts'
import type { KeyedMutex } from '../../../../kit/sys/mutex.ts'
import { cutOff, type GuestNetwork, isOvn, plugIn, unplug } from '../network/ovn.ts'
import type { GuestFiles } from './guest-files.ts'
import { readGuestRecord, writeGuestRecord } from './guest-record.ts'
import { type GuestUser, type GuestUsers, hostPath } from './guest-users.ts'
import { type Guest, type GuestDisk, type GuestInterface, portNameOf, type SnapshotChange } from './hypervisor.ts'
import {
  askForDisk,
  changeSnapshots,
  closeReleased,
  cutOffDisk,
  growDisk,
  listDiskDevices,
  listDisks,
  plugDisk,
  slotOfDevice,
} from './qemu-disks.ts'
import { askForInterface, closeInterface, interfaceDevice, listInterfaces, plugInterface } from './qemu-interfaces.ts'
import type { Qmp } from './qmp.ts'

/** A guest whose process answers. */
export interface AttachedGuest {
  readonly pid: number
  readonly qmp: Qmp
  /** Paths of the disks that QEMU has open, by slot. */
  readonly disks: Map<number, string>
  /** Slots of disks that were taken by force and that the guest has yet to release. */
  cutOff: readonly number[]
  /** Slots of disks that QEMU has open and the guest does not have. */
  unheld: readonly number[]
  /** Interfaces that the guest has. */
  interfaces: readonly GuestInterface[]
  /** User that the guest runs as; undefined when it runs as the agent. */
  readonly user: GuestUser | undefined
  state: Guest['state']
  /** QEMU has paused it because a disk could not grow. */
  isDiskFull: boolean
}

export interface GuestDevicesOptions {
  /** Undefined for a guest that this agent is not attached to, or that does not run. */
  readonly attached: (name: string) => AttachedGuest | undefined
  /** Allows one change of a guest at a time. */
  readonly locks: KeyedMutex
  /** The guest's folder. */
  readonly folderOf: (name: string) => string
  readonly files: GuestFiles
  readonly users: GuestUsers | undefined
  readonly network: GuestNetwork
  readonly log: Logger
  /** Notifies listeners that the guest has changed. */
  readonly changed: (name: string) => void
}

/** Disks that QEMU has open, by slot, and the slots that the guest has. */
async function readSlots(qmp: Qmp, user: GuestUser | undefined) {
  const found = new Map([...(await listDisks(qmp))].map(([slot, file]) => [slot, hostPath(user, file)]))
  const devices = await listDiskDevices(qmp)
  return {
    found,
    cutOff: [...devices].flatMap(([slot, has]) => (has === 'cut_off' ? [slot] : [])),
    unheld: [...found.keys()].filter((slot) => devices.get(slot) !== 'disk'),
  }
}

/** Returns what a guest has, for an agent that attaches to it. First it cleans up what the previous agent left half
 *  done: it closes disks that are open without a device, and asks the guest again to release devices without a disk. */
export async function findDisks(
  qmp: Qmp,
  user: GuestUser | undefined,
): Promise<Pick<AttachedGuest, 'cutOff' | 'unheld'> & { readonly disks: Map<number, string> }> {
  const { cutOff, unheld } = await readSlots(qmp, user)
  for (const slot of cutOff) await askForDisk(qmp, slot)
  // A disk that a job still reads stays open.
  for (const slot of unheld) await closeReleased(qmp, slot).catch(() => undefined)
  const { found: disks, ...slots } = await readSlots(qmp, user)
  return { disks, ...slots }
}

/** Plugging throws Unavailable while the guest does not run. Unplugging something that the guest does not have does
 *  nothing. Growing and snapshots return false when QEMU does not have the disk; then the caller changes the file
 *  itself. */
export class GuestDevices {
  readonly #options: GuestDevicesOptions

  constructor(options: GuestDevicesOptions) {
    this.#options = options
  }

  plugDisk(name: string, disk: GuestDisk): Promise<boolean> {
    return this.#options.locks.run(name, async () => {
      const attachment = this.#options.attached(name)
      if (attachment?.state !== 'running') throw new Unavailable(`guest ${name}`)
      const { slot = 0, path } = disk
      if (!attachment.disks.has(slot)) attachment.disks.set(slot, path)
      try {
        await this.#options.files.lendCluster(name, [disk], attachment.user)
        return await plugDisk(attachment.qmp, await this.#options.files.diskFor(attachment.user, disk))
      } finally {
        await this.#readDisks(name, attachment)
      }
    })
  }

  unplugDisk(name: string, path: string, isForced: boolean): Promise<void> {
    return this.#options.locks.run(name, async () => {
      const attachment = this.#options.attached(name)
      const [slot] = [...(attachment?.disks ?? [])].find(([, known]) => known === path) ?? []
      if (attachment === undefined || slot === undefined) return
      if (isForced) await cutOffDisk(attachment.qmp, slot)
      else if (!(await closeReleased(attachment.qmp, slot))) await askForDisk(attachment.qmp, slot)
      await this.#readDisks(name, attachment)
    })
  }

  plugInterface(name: string, added: GuestInterface): Promise<void> {
    return this.#options.locks.run(name, async () => {
      const attachment = this.#options.attached(name)
      const record = await readGuestRecord(this.#options.folderOf(name))
      if (attachment?.state !== 'running' || record === undefined) throw new Unavailable(`guest ${name}`)
      const { slot } = added
      const portName = portNameOf(name, added)
      const known = attachment.interfaces.find((each) => portNameOf(name, each) === portName)
      if (known !== undefined && known.isLeaving !== true) return
      if (known !== undefined) return this.#keepInterface(name, attachment, known, record.user?.id)
      if (slot === undefined || attachment.interfaces.some((known) => known.slot === slot))
        throw new Error(`interface ${slot} of guest ${name} is taken`)
      const { network } = this.#options
      // Recorded first, so that the next agent can clean up after a crash halfway.
      await this.#noteInterfaces(name, attachment, [...attachment.interfaces, { ...added, portName }])
      try {
        if (isOvn(network)) await plugIn(network, name, [{ index: slot, portName }], record.user?.id)
        await plugInterface(attachment.qmp, network, name, { ...added, slot })
      } catch (error) {
        await this.closeReleasedInterfaces(name, attachment)
        throw error
      }
    })
  }

  /** Joins an interface again that the guest was asked to release and still has. If the guest releases it anyway, the
   *  interface is plugged in again. */
  async #keepInterface(
    name: string,
    attachment: AttachedGuest,
    { isLeaving: _isLeaving, ...guestInterface }: GuestInterface,
    user: number | undefined,
  ): Promise<void> {
    await this.closeReleasedInterfaces(name, attachment)
    const { slot } = guestInterface
    if (slot === undefined || !attachment.interfaces.some((each) => each.slot === slot)) return
    if (isOvn(this.#options.network))
      await plugIn(this.#options.network, name, [{ index: slot, portName: portNameOf(name, guestInterface) }], user)
    await this.#noteInterfaces(
      name,
      attachment,
      attachment.interfaces.map((each) => (each.slot === slot ? guestInterface : each)),
    )
  }

  unplugInterface(name: string, portName: string): Promise<void> {
    return this.#options.locks.run(name, async () => {
      const attachment = this.#options.attached(name)
      const { slot } = attachment?.interfaces.find((known) => portNameOf(name, known) === portName) ?? {}
      if (attachment === undefined || slot === undefined) return
      // Recorded first, so that a later plug joins the interface to its port again.
      await this.#noteInterfaces(
        name,
        attachment,
        attachment.interfaces.map((known) => (known.slot === slot ? { ...known, isLeaving: true as const } : known)),
      )
      if (isOvn(this.#options.network)) await cutOff(name, slot)
      await askForInterface(attachment.qmp, slot)
      await this.closeReleasedInterfaces(name, attachment)
    })
  }

  /** Removes from the host the interfaces that the guest has released. */
  async closeReleasedInterfaces(name: string, attachment: AttachedGuest): Promise<void> {
    const { qmp, interfaces } = attachment
    const { network } = this.#options
    const held = await listInterfaces(qmp)
    const released = interfaces.flatMap(({ slot }) => (slot === undefined || held.includes(slot) ? [] : [slot]))
    if (released.length === 0) return
    for (const slot of released) await closeInterface(qmp, slot)
    if (isOvn(network)) await unplug(network, name, released)
    await this.#noteInterfaces(
      name,
      attachment,
      interfaces.filter(({ slot }) => slot === undefined || !released.includes(slot)),
    )
    this.#options.changed(name)
  }

  async #noteInterfaces(name: string, attachment: AttachedGuest, interfaces: readonly GuestInterface[]): Promise<void> {
    const folder = this.#options.folderOf(name)
    const record = await readGuestRecord(folder)
    if (record === undefined) throw new Error(`guest ${name} has no record`)
    await writeGuestRecord(folder, { ...record, interfaces: [...interfaces] })
    attachment.interfaces = interfaces
  }

  growDisk(name: string, path: string, gibibytes: number): Promise<boolean> {
    return this.#options.locks.run(name, async () => {
      const attachment = this.#options.attached(name)
      const [slot] = [...(attachment?.disks ?? [])].find(([, known]) => known === path) ?? []
      if (attachment?.state !== 'running' || slot === undefined) return false
      await growDisk(attachment.qmp, slot, gibibytes)
      return true
    })
  }

  changeSnapshots(name: string, path: string, change: SnapshotChange): Promise<boolean> {
    return this.#options.locks.run(name, async () => {
      const attachment = this.#options.attached(name)
      const [slot] = [...(attachment?.disks ?? [])].find(([, known]) => known === path) ?? []
      if (attachment?.state !== 'running' || slot === undefined) return false
      await changeSnapshots(attachment.qmp, slot, change)
      return true
    })
  }

  /** Reads which disks QEMU has open. A disk counts as closed only when the process does not have its file open,
   *  whatever QEMU reports; until then the guest has it. */
  async #readDisks(name: string, attachment: AttachedGuest): Promise<void> {
    const { pid, qmp, disks, user } = attachment
    const { found, cutOff, unheld } = await readSlots(qmp, user)
    const removals = [...disks].filter(([slot]) => !found.has(slot))
    let isChanged = attachment.cutOff.some((slot) => !cutOff.includes(slot))
    Object.assign(attachment, { cutOff, unheld })
    for (const [slot, path] of removals) {
      if (await hasOpen(pid, path)) {
        this.#options.log.error('disk is still open after its release', { guest: name, slot })
        continue
      }
      // Released before anybody can see that the disk is free. The file may already be deleted.
      await this.#options.users?.release(path).catch(() => undefined)
      disks.delete(slot)
      isChanged = true
    }
    for (const [slot, path] of found) disks.set(slot, path)
    if (isChanged) this.#options.changed(name)
  }

  /** Handles the guest's release of a device: closes the file of a disk, or removes an interface. */
  async closeReleased(name: string, device: unknown): Promise<void> {
    const attachment = this.#options.attached(name)
    if (attachment?.interfaces.some(({ slot }) => slot !== undefined && interfaceDevice(slot) === device) === true)
      return this.#options.locks.run(name, () => this.closeReleasedInterfaces(name, attachment))
    const slot = typeof device === 'string' ? slotOfDevice(device) : undefined
    if (attachment === undefined || slot === undefined) return
    await this.#options.locks.run(name, async () => {
      await closeReleased(attachment.qmp, slot)
      await this.#readDisks(name, attachment)
    })
  }
}
