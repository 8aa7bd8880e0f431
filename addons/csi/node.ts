/** The Node service: disks of the guest that it runs in, identified by their serials, as file systems or raw disks. Its
 *  only state is the kernel's list of mounts, so a new process continues where another one died. */
import { realpath, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DATA_STORAGES_PER_SERVER_MAXIMUM } from '../../domain/storage/rules.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { readMounts } from '../../kit/sys/mounts.ts'
import { oneAtATime } from './busy.ts'
import { type FileSystem, fileSystemOf, requireCapability } from './capabilities.ts'
import { diskBytes, ensureFileSystem, findDisk, growFileSystem, mountDisk } from './disks.ts'
import { ZONE_KEY } from './identity.ts'
import type { NodePublishRequest, NodeService, StageRequest, VolumeCapability, VolumeUsage } from './messages.ts'
import { bind, diskBehind, diskNumber, makeFile, makeFolder, mountAt, removeTarget, unmount } from './mounts.ts'
import { Refused, required } from './refusal.ts'
import { isThere } from '../../kit/sys/is-there.ts'

export interface NodeOptions {
  /** Id of the server that it runs on. */
  readonly serverId: string
  readonly zone: string
  /** Folder with links to disks by serial. */
  readonly disksFolder: string
  readonly clock: Clock
}

const CAPABILITIES = ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS', 'EXPAND_VOLUME', 'SINGLE_NODE_MULTI_WRITER'] as const

export function nodeService(options: NodeOptions): NodeService {
  const once = oneAtATime()
  const of = async (volumeId: string, work: () => Promise<void>) => {
    await once(required(volumeId, 'volume_id'), work)
    return {}
  }
  return {
    NodeStageVolume: (request) => of(request.volumeId, () => stage(options, request)),
    NodeUnstageVolume: ({ volumeId, stagingTargetPath }) =>
      of(volumeId, () => unmount(required(stagingTargetPath, 'staging_target_path'))),
    NodePublishVolume: (request) => of(request.volumeId, () => publish(options, request)),
    NodeUnpublishVolume: ({ volumeId, targetPath }) =>
      of(volumeId, () => removeTarget(required(targetPath, 'target_path'))),
    async NodeGetVolumeStats({ volumeId, volumePath }) {
      required(volumeId, 'volume_id')
      return { usage: await usageOf(required(volumePath, 'volume_path')) }
    },
    NodeExpandVolume: ({ volumeId, volumePath }) =>
      once(required(volumeId, 'volume_id'), async () => ({
        capacityBytes: await expand(required(volumePath, 'volume_path')),
      })),
    NodeGetCapabilities: async () => ({ capabilities: CAPABILITIES.map((type) => ({ rpc: { type } })) }),
    NodeGetInfo: async () => ({
      nodeId: options.serverId,
      maxVolumesPerNode: DATA_STORAGES_PER_SERVER_MAXIMUM,
      accessibleTopology: { segments: { [ZONE_KEY]: options.zone } },
    }),
  }
}

function typeOf({ mount }: VolumeCapability): FileSystem {
  const type = fileSystemOf(mount?.fsType ?? '')
  if (type === undefined) throw new Refused('INVALID_ARGUMENT', 'an unknown file system')
  return type
}

const isReadOnly = ({ accessMode }: VolumeCapability): boolean => accessMode?.mode === 'SINGLE_NODE_READER_ONLY'

async function stage({ disksFolder, clock }: NodeOptions, request: StageRequest): Promise<void> {
  const path = required(request.stagingTargetPath, 'staging_target_path')
  const capability = requireCapability(request.volumeCapability)
  const disk = await findDisk(disksFolder, request.publishContext['serial'] ?? '', clock)
  if (capability.mount === undefined) return
  const [behind, number] = [await diskBehind(path), await diskNumber(disk)]
  if (behind !== undefined && behind !== number)
    throw new Refused('ALREADY_EXISTS', `something else is mounted at ${path}`)
  const type = typeOf(capability)
  if (behind === undefined) {
    await makeFolder(path)
    await ensureFileSystem(disk, type)
    await mountDisk(disk, path, { type, flags: capability.mount.mountFlags })
  }
  // needed for a copy of a smaller volume
  if (!capability.mount.mountFlags.includes('ro')) await growFileSystem(disk, path, type)
}

async function publish({ disksFolder, clock }: NodeOptions, request: NodePublishRequest): Promise<void> {
  const path = required(request.targetPath, 'target_path')
  const capability = requireCapability(request.volumeCapability)
  const readOnly = request.readonly || isReadOnly(capability)
  const isRaw = capability.block !== undefined
  const disk = await findDisk(disksFolder, request.publishContext['serial'] ?? '', clock)
  const source = isRaw ? disk : required(request.stagingTargetPath, 'staging_target_path')
  const number = await diskNumber(disk)
  if (!isRaw && (await diskBehind(source)) !== number)
    throw new Refused('FAILED_PRECONDITION', `the volume is not staged at ${source}`)
  const behind = await diskBehind(path)
  if (behind === number) return
  if (behind !== undefined) throw new Refused('ALREADY_EXISTS', `something else is mounted at ${path}`)
  if (capability.accessMode?.mode === 'SINGLE_NODE_SINGLE_WRITER') await requireAlone(number, source)
  if (isRaw && readOnly) throw new Refused('INVALID_ARGUMENT', 'a raw disk can be written wherever it can be read')
  if (isRaw) {
    await makeFolder(dirname(path))
    await makeFile(path)
  } else await makeFolder(path)
  await bind(source, path, readOnly)
}

/** Throws when the disk is in use at a path other than its staging path. */
async function requireAlone(number: string, staged: string): Promise<void> {
  for (const { path, device, root } of await readMounts())
    if (path !== staged && (device === number || (await isBoundDisk(root, path, number))))
      throw new Refused('FAILED_PRECONDITION', `the volume has one user, and is at ${path}`)
}

/** Whether the mount shows only one path of a file system, and that path is the disk. */
const isBoundDisk = async (root: string, path: string, number: string): Promise<boolean> =>
  root !== '/' && (await diskBehind(path)) === number

/** Throws when there is no volume at the path. */
async function requireVolume(path: string): Promise<void> {
  if (!(await isThere(path)) || (await mountAt(path)) === undefined)
    throw new Refused('NOT_FOUND', `there is no volume at ${path}`)
}

async function usageOf(path: string): Promise<readonly VolumeUsage[]> {
  await requireVolume(path)
  if ((await stat(path)).isBlockDevice()) return [{ total: await diskBytes(path), unit: 'BYTES' }]
  const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(path)
  return [
    { unit: 'BYTES', total: blocks * bsize, available: bavail * bsize, used: (blocks - bfree) * bsize },
    { unit: 'INODES', total: files, available: ffree, used: files - ffree },
  ]
}

/** Grows the file system to its disk; returns the bytes of the disk. */
async function expand(path: string): Promise<number> {
  await requireVolume(path)
  if ((await stat(path)).isBlockDevice()) return diskBytes(path)
  const mount = await mountAt(path)
  if (mount === undefined) throw new Refused('NOT_FOUND', `there is no volume at ${path}`)
  const disk = await realpath(mount.source)
  if ((await diskNumber(disk)) !== mount.device) throw new Error(`${disk} is not what is mounted at ${path}`)
  await growFileSystem(disk, path, mount.type)
  return diskBytes(disk)
}
