/** Disks of a running QEMU, through QMP: plug, unplug, grow. The boot disk has slot 0 and stays. Each other disk has
 *  its own port, so that it can be plugged and unplugged. Only QEMU knows what it has open, so everything is named
 *  after the slot, and the next agent finds it. */
import { z } from 'zod'
import { rbdPath, readRbdPath } from '../storage/rbd-path.ts'
import type { GuestDisk, SnapshotChange } from './hypervisor.ts'
import { type Qmp, QmpError } from './qmp.ts'

export const fileNode = (slot: number): string => `file${slot}`
export const diskNode = (slot: number): string => `disk${slot}`
/** The node of the disk in this file node. */
export const diskOf = (node: string): string => node.replace(/^file/, 'disk')
export const diskDevice = (slot: number): string => `vd${slot}`
/** Undefined for a device that is not a disk with a slot. */
export const slotOfDevice = (device: string): number | undefined => {
  const slot = /^vd(\d+)$/.exec(device)?.[1]
  return slot === undefined ? undefined : Number(slot)
}
/** The port that is reserved for the disk of the slot; q35 cannot add ports at run time. */
export const diskPort = (slot: number): string => `spare${slot - 1}`

/** The disk's device, in the form for the command line and QMP. A guest is notified before a disk with a slot is
 *  unplugged. */
export const deviceOf = ({ serial, slot = 0 }: Pick<GuestDisk, 'serial' | 'slot'>) => ({
  driver: 'virtio-blk-pci',
  id: diskDevice(slot),
  drive: diskNode(slot),
  serial,
  ...(slot === 0 ? {} : { bus: diskPort(slot) }),
})
/** Files with the access to the Ceph cluster of a guest's disks, in the working directory of its process. */
export const CEPH_FILES = { configuration: 'ceph.conf', keyring: 'ceph.keyring' } as const

/** The node of the disk's file or image, and the node of the disk in it. */
export function blockNodesOf({ path, slot = 0, backing }: Pick<GuestDisk, 'path' | 'slot' | 'backing'>) {
  const names = { below: { 'node-name': fileNode(slot) }, disk: { 'node-name': diskNode(slot), file: fileNode(slot) } }
  const image = readRbdPath(path)
  if (image !== undefined)
    return [
      { driver: 'rbd', ...names.below, ...image, conf: CEPH_FILES.configuration, discard: 'unmap' },
      { driver: 'raw', ...names.disk, discard: 'unmap' },
    ]
  return [
    { driver: 'file', ...names.below, filename: path, locking: 'on', discard: 'unmap' },
    {
      driver: 'qcow2',
      ...names.disk,
      discard: 'unmap',
      ...(backing === undefined ? {} : { backing: backingNode(backing) }),
    },
  ]
}
const backingNode = (path: string) => ({
  driver: 'qcow2',
  'read-only': true,
  file: { driver: 'file', filename: path, 'read-only': true },
})

const Nodes = z.array(z.looseObject({ 'node-name': z.string(), drv: z.string(), file: z.string() }))
const Properties = z.array(z.looseObject({ name: z.string() }))

const listNodes = async (qmp: Qmp) => Nodes.parse(await qmp.execute('query-named-block-nodes', { flat: true }))
/** Ids of the guest's devices. */
export const listDevices = async (qmp: Qmp): Promise<readonly string[]> =>
  Properties.parse(await qmp.execute('qom-list', { path: '/machine/peripheral' })).map(({ name }) => name)

const Image = z.looseObject({ pool: z.string(), image: z.string(), user: z.string() })
const JSON_NAME = 'json:'

/** Path of the file or image that the node has open; undefined for other nodes. */
export function openedBy({ drv, file }: { readonly drv: string; readonly file: string }): string | undefined {
  if (drv === 'file') return file
  return drv === 'rbd' && file.startsWith(JSON_NAME)
    ? rbdPath(Image.parse(JSON.parse(file.slice(JSON_NAME.length))))
    : undefined
}

/** Path and slot of every disk whose file QEMU has open. */
export async function listDisks(qmp: Qmp): Promise<ReadonlyMap<number, string>> {
  const nodes = await listNodes(qmp)
  return new Map(
    nodes.flatMap((node) => {
      const [slot, path] = [/^file(\d+)$/.exec(node['node-name'])?.[1], openedBy(node)]
      return slot === undefined || path === undefined ? [] : [[Number(slot), path] as const]
    }),
  )
}

/** What the guest has in the slots: a disk, or the device of a disk that was taken by force and that it has yet to
 *  release. */
export async function listDiskDevices(qmp: Qmp): Promise<ReadonlyMap<number, 'disk' | 'cut_off'>> {
  const found = new Map<number, 'disk' | 'cut_off'>()
  for (const id of await listDevices(qmp)) {
    const slot = slotOfDevice(id)
    if (slot !== undefined) found.set(slot, (await isCutOff(qmp, slot)) ? 'cut_off' : 'disk')
  }
  return found
}

const driveOf = (slot: number) => ({ path: `/machine/peripheral/${diskDevice(slot)}`, property: 'drive' })
const isCutOff = async (qmp: Qmp, slot: number): Promise<boolean> =>
  (await qmp.execute('qom-get', driveOf(slot))) === brokenNode(slot)

/** Plugs the disk into the guest; does nothing when the guest has this disk already. Returns false while the guest has
 *  yet to release a disk that was taken by force, and asks it again. QmpError when the slot is taken by another disk.
 */
export async function plugDisk(qmp: Qmp, disk: GuestDisk): Promise<boolean> {
  const { slot = 0, path } = disk
  const held = (await listDiskDevices(qmp)).get(slot)
  if (held === 'cut_off') {
    await askForDisk(qmp, slot)
    return false
  }
  // Nodes without a device are left over from an interrupted attempt and may not match the file, so they are closed
  // first.
  if (held === undefined) {
    await closeDisk(qmp, slot)
    for (const node of blockNodesOf(disk)) await qmp.execute('blockdev-add', node)
    try {
      await qmp.execute('device_add', deviceOf(disk))
    } catch (error) {
      await closeDisk(qmp, slot)
      throw error
    }
  }
  const [device, opened] = [(await listDiskDevices(qmp)).get(slot), (await listDisks(qmp)).get(slot)]
  if (device !== 'disk' || opened !== path) throw new QmpError('SlotTaken', `slot ${slot} has another disk`)
  return true
}

/** Asks the guest to release the disk. Does nothing when it was asked already. */
export async function askForDisk(qmp: Qmp, slot: number): Promise<void> {
  if (!(await listDevices(qmp)).includes(diskDevice(slot))) return
  // QEMU refuses a second request
  await qmp.execute('device_del', { id: diskDevice(slot) }).catch(() => undefined)
}

/** Closes the disk's file once the guest has released the device; returns whether it is closed. */
export async function closeReleased(qmp: Qmp, slot: number): Promise<boolean> {
  if ((await listDevices(qmp)).includes(diskDevice(slot))) return !(await listDisks(qmp)).has(slot)
  await closeDisk(qmp, slot)
  return true
}

async function closeDisk(qmp: Qmp, slot: number): Promise<void> {
  const known = (await listNodes(qmp)).map(({ 'node-name': name }) => name)
  for (const name of [diskNode(slot), fileNode(slot), brokenNode(slot), emptyNode(slot)])
    if (known.includes(name)) await qmp.execute('blockdev-del', { 'node-name': name })
}

const brokenNode = (slot: number): string => `broken${slot}`
const emptyNode = (slot: number): string => `empty${slot}`
const INPUT_OUTPUT_ERROR = 5

/** Takes the disk from a guest that does not release it. All further reads and writes of the guest fail, and the file
 *  is closed when this resolves. The guest keeps the empty device until it releases that, which it is asked to do. */
export async function cutOffDisk(qmp: Qmp, slot: number): Promise<void> {
  if (!(await listDevices(qmp)).includes(diskDevice(slot))) return closeDisk(qmp, slot)
  const nodes = await listNodes(qmp)
  const has = (name: string) => nodes.some(({ 'node-name': known }) => known === name)
  if (!has(emptyNode(slot))) await qmp.execute('blockdev-add', { driver: 'null-co', 'node-name': emptyNode(slot) })
  if (!has(brokenNode(slot)))
    await qmp.execute('blockdev-add', {
      driver: 'blkdebug',
      'node-name': brokenNode(slot),
      image: emptyNode(slot),
      'inject-error': [{ event: 'none', errno: INPUT_OUTPUT_ERROR, immediately: true }],
    })
  // QEMU 7.2 crashes when a device gets the drive that it has
  if (!(await isCutOff(qmp, slot))) await qmp.execute('qom-set', { ...driveOf(slot), value: brokenNode(slot) })
  for (const name of [diskNode(slot), fileNode(slot)])
    if (has(name)) await qmp.execute('blockdev-del', { 'node-name': name })
  await askForDisk(qmp, slot)
}

const SNAPSHOT_COMMANDS = {
  take: 'blockdev-snapshot-internal-sync',
  remove: 'blockdev-snapshot-delete-internal-sync',
} as const
/** QEMU counts the clusters that a snapshot shares; that takes longer for larger disks. */
const SNAPSHOT_TIMEOUT_MILLISECONDS = 300_000

/** QmpError while a backup reads the disk, or while the disk is copied. */
export const changeSnapshots = (qmp: Qmp, slot: number, { verb, label }: SnapshotChange): Promise<unknown> =>
  qmp.execute(SNAPSHOT_COMMANDS[verb], { device: diskNode(slot), name: label }, SNAPSHOT_TIMEOUT_MILLISECONDS)

const BYTES_PER_GIBIBYTE = 1024 ** 3

/** The guest sees the larger disk at once. Does nothing when it is that large. QmpError while the disk is copied. */
export const growDisk = (qmp: Qmp, slot: number, gibibytes: number): Promise<unknown> =>
  qmp.execute('block_resize', { 'node-name': diskNode(slot), size: gibibytes * BYTES_PER_GIBIBYTE })
