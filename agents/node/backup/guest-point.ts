/** A point of a disk that a running guest has open, through QMP. The guest continues to write. Before the guest
 *  overwrites data, QEMU copies the old data to a file that exists as long as the backup runs. The point outlives the
 *  agent: everything is named after the backup, so the next agent finds it. It is lost when the guest's process exits.
 */
import { rm } from 'node:fs/promises'
import { z } from 'zod'
import { Unavailable } from '../../../domain/problem.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { diskOf, openedBy } from '../drivers/hypervisor/qemu-disks.ts'
import type { GuestMonitor } from '../drivers/hypervisor/hypervisor.ts'
import type { Qmp } from '../drivers/hypervisor/qmp.ts'
import { runProgram } from '../run-program.ts'
import { bitmapOf, type Changes, changesSince, isBackupBitmap } from './bitmaps.ts'

export interface GuestPointOptions {
  readonly execute: Qmp['execute']
  readonly whileFrozen: GuestMonitor['whileFrozen']
  /** The disk's file, under the name that QEMU uses. */
  readonly path: string
  readonly backup: string
  /** The newest complete backup of the storage. */
  readonly parent: string | undefined
  /** File for the old data that the guest overwrites. */
  readonly overwrittenFile: string
  /** Lets QEMU open the file; returns the name that QEMU uses for it. */
  readonly give: (path: string) => Promise<string>
  /** Path of the socket at which the point can be read, as QEMU resolves it. */
  readonly socket: string
  /** Path of the same socket for other processes. */
  readonly connectSocket: string
  readonly clock: Clock
}

export interface GuestPoint {
  readonly exportName: string
  /** Records what has changed. Absent when the backup must read everything. */
  readonly bitmap?: string
  readonly changes: Changes
  /** The guest's file systems were frozen at the point. False when an earlier agent created the point, because that is
   *  not recorded. */
  readonly isFrozen: boolean
}

const NODE_NAME_CHARACTERS_MAXIMUM = 31
const END_POLL_MILLISECONDS = 50
const END_POLLS_MAXIMUM = 200

const Nodes = z.array(
  z.looseObject({
    'node-name': z.string(),
    drv: z.string(),
    file: z.string(),
    image: z.looseObject({ 'virtual-size': z.number() }),
    'dirty-bitmaps': z
      .array(
        z.looseObject({ name: z.string().optional(), recording: z.boolean(), inconsistent: z.boolean().optional() }),
      )
      .default([]),
  }),
)
type Node = z.infer<typeof Nodes>[number]
const Jobs = z.array(z.looseObject({ device: z.string() }))
const Exports = z.array(z.looseObject({ id: z.string() }))

const namesOf = (backup: string) => ({
  job: bitmapOf(backup),
  exportName: bitmapOf(backup),
  /** Holds changes up to the point only. The bitmap of the parent continues to record. */
  frozen: `point-${backup}`,
  node: `point-${backup.replaceAll('-', '')}`.slice(0, NODE_NAME_CHARACTERS_MAXIMUM),
})

const diskNode = async ({ execute, path }: Pick<GuestPointOptions, 'execute' | 'path'>): Promise<Node> => {
  const nodes = Nodes.parse(await execute('query-named-block-nodes'))
  const fileNode = nodes.find((each) => openedBy(each) === path)
  const node = nodes.find(
    ({ drv, file, 'node-name': name }) =>
      drv === 'qcow2' && (file === path || (fileNode !== undefined && name === diskOf(fileNode['node-name']))),
  )
  if (node === undefined) throw new Unavailable(`the guest's disk ${path}`, undefined)
  return node
}

/** Creates the point, or finds the one that was created for this backup. It contains all writes to the disk before it
 *  and none after. */
export async function openGuestPoint(options: GuestPointOptions): Promise<GuestPoint> {
  const { execute, backup, parent } = options
  const { job, exportName, frozen } = namesOf(backup)
  const node = await diskNode(options)
  const bitmaps = node['dirty-bitmaps']
  const isMade =
    Jobs.parse(await execute('query-block-jobs')).some(({ device }) => device === job) &&
    Exports.parse(await execute('query-block-exports')).some(({ id }) => id === exportName)
  if (!isMade) return makePoint(options, node)
  const isIncremental = bitmaps.some(({ name }) => name === frozen) && parent !== undefined
  return {
    exportName,
    ...(isIncremental ? { bitmap: frozen } : {}),
    changes: isIncremental ? { since: parent } : { fullBecause: 'the disk has no record of what has changed' },
    isFrozen: false,
  }
}

async function makePoint(options: GuestPointOptions, node: Node): Promise<GuestPoint> {
  const { execute, whileFrozen, backup, parent, overwrittenFile, socket, give } = options
  await endPoint(options, node)
  if (node['dirty-bitmaps'].some(({ name }) => name === bitmapOf(backup)))
    await execute('block-dirty-bitmap-remove', { node: node['node-name'], name: bitmapOf(backup) })
  const { job, exportName, frozen, node: pointNode } = namesOf(backup)
  const source = node['node-name']
  const changes = changesSince(
    parent,
    node['dirty-bitmaps'].flatMap(({ name, recording, inconsistent }) =>
      name === undefined ? [] : [{ name, isLost: inconsistent === true || !recording }],
    ),
  )
  const size = String(node.image['virtual-size'])
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', overwrittenFile, size])
  await execute('blockdev-add', {
    driver: 'qcow2',
    'node-name': pointNode,
    file: { driver: 'file', filename: await give(overwrittenFile), discard: 'unmap' },
    backing: source,
  })
  const bitmap = (name: string, fields: object) => ({
    type: 'block-dirty-bitmap-add',
    data: { node: source, name, ...fields },
  })
  const actions = [
    bitmap(bitmapOf(backup), { persistent: true }),
    ...('since' in changes
      ? [
          bitmap(frozen, { disabled: true }),
          {
            type: 'block-dirty-bitmap-merge',
            data: { node: source, target: frozen, bitmaps: [bitmapOf(changes.since)] },
          },
        ]
      : []),
    { type: 'blockdev-backup', data: { device: source, target: pointNode, sync: 'none', 'job-id': job } },
  ]
  const { isFrozen } = await whileFrozen(() => execute('transaction', { actions }))
  await execute('nbd-server-start', { addr: { type: 'unix', data: { path: socket } }, 'max-connections': 0 })
  const isIncremental = 'since' in changes
  await execute('block-export-add', {
    type: 'nbd',
    id: exportName,
    'node-name': pointNode,
    name: exportName,
    ...(isIncremental ? { bitmaps: [frozen] } : {}),
  })
  return { exportName, ...(isIncremental ? { bitmap: frozen } : {}), changes, isFrozen }
}

/** Closes the point. When the backup is complete, only changes since its point are recorded from now on. Otherwise the
 *  records are as if the backup had never started. Does nothing when the point is closed; may be repeated. */
export async function closeGuestPoint(
  options: Omit<GuestPointOptions, 'parent' | 'give' | 'whileFrozen'>,
  { isComplete }: { readonly isComplete: boolean },
): Promise<void> {
  const { execute, backup } = options
  await endPoint(options, await diskNode(options))
  const { 'node-name': node, 'dirty-bitmaps': bitmaps } = await diskNode(options)
  const own = bitmapOf(backup)
  const names = bitmaps.flatMap(({ name }) => (name === undefined ? [] : [name]))
  if (isComplete && !names.includes(own)) return
  for (const name of names.filter((each) => isBackupBitmap(each) && (each === own) !== isComplete))
    await execute('block-dirty-bitmap-remove', { node, name })
}

/** Removes everything that exists of the point except the bitmap that it started. Removes the bitmap too when the point
 *  was only half created. */
async function endPoint(
  {
    execute,
    backup,
    connectSocket,
    overwrittenFile,
    clock,
  }: Omit<GuestPointOptions, 'parent' | 'give' | 'whileFrozen'>,
  { 'node-name': source, 'dirty-bitmaps': bitmaps }: Node,
): Promise<void> {
  const { job, exportName, frozen, node } = namesOf(backup)
  if (Exports.parse(await execute('query-block-exports')).some(({ id }) => id === exportName))
    await execute('block-export-del', { id: exportName, mode: 'hard' })
  await execute('nbd-server-stop').catch(() => undefined) // no server may run
  const jobs = async () => Jobs.parse(await execute('query-block-jobs')).some(({ device }) => device === job)
  if (await jobs()) await execute('block-job-cancel', { device: job, force: true })
  for (let polls = 0; await jobs(); polls++) {
    if (polls >= END_POLLS_MAXIMUM) throw new Unavailable('the end of the block job of a backup', undefined)
    await clock.sleep(END_POLL_MILLISECONDS)
  }
  const nodes = Nodes.parse(await execute('query-named-block-nodes'))
  if (nodes.some((each) => each['node-name'] === node)) await execute('blockdev-del', { 'node-name': node })
  if (bitmaps.some(({ name }) => name === frozen))
    await execute('block-dirty-bitmap-remove', { node: source, name: frozen })
  await rm(connectSocket, { force: true })
  await rm(overwrittenFile, { force: true })
}
