/** Storages, servers and backups as the platform would put them there, for tables of refusals. */
import { claimServer } from '../../db/server/index.ts'
import { claimSnapshot } from '../../db/snapshot/index.ts'
import { attachStorage, claimStorage } from '../../db/storage/index.ts'
import type { OperationKind } from '../../domain/operations.ts'
import { newUuid, systemRandom as random } from '../../kit/sys/random.ts'
import { Backup, type BackupSpec, type BackupStatus } from '../../resources/backup/index.ts'
import { CustomImage } from '../../resources/custom-image/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../resources/server/index.ts'
import { Snapshot, type SnapshotSpec, type SnapshotStatus } from '../../resources/snapshot/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../resources/storage/index.ts'
import { type Given, type Scene, stanza } from './refusals.ts'

const zone = 'eu-1-a'
const AT = new Date('2026-01-01')
/** The name of a machine that the platform runs. */
export const MACHINE = 'machine-00000000-0000-4000-8000-000000000000'
/** No object has this name. */
export const UNKNOWN = '00000000-0000-4000-8000-000000000000'

export interface Disk {
  readonly spec?: Partial<StorageSpec>
  readonly status?: Partial<StorageStatus>
}

/** A storage that is online, with what it holds; at a server that is there when asked for. */
export const disk =
  ({ spec = {}, status = {} }: Disk = {}, { isAttached = false, isDeleting = false, isClaimed = true } = {}): Given =>
  async (scene) => {
    const { accountId, put, claim } = scene
    const storageId = newUuid(random)
    const serverId = isAttached ? await server()(scene) : undefined
    const full = { zone, title: '', sizeGibibytes: 2, tier: 'standard', isBoot: false, labels: {}, isProtected: false }
    const held = { state: 'online', sizeGibibytes: 2, nodeName: scene.cloud.node, ...status }
    await put(Storage, storageId, { ...full, ...spec, ...(serverId && { serverId }) }, held, { isDeleting })
    const claimed = { accountId, storageId, zone: spec.zone ?? zone, sizeGibibytes: 2 }
    if (isClaimed && spec.isBoot !== true && claimed.zone === zone)
      await claim(async (tx) => {
        await claimStorage(tx, claimed, AT)
        if (serverId !== undefined) await attachStorage(tx, { ...claimed, serverId, volume: storageId })
      })
    return storageId
  }

/** A server that is off, and has room on a host unless it is asked for without. */
export const server =
  ({
    spec = {},
    status = {},
    hasRoom = true,
  }: {
    readonly spec?: Partial<ServerSpec>
    readonly status?: Partial<ServerStatus>
    readonly hasRoom?: boolean
  } = {}): Given =>
  async ({ accountId, put, claim }: Scene) => {
    const serverId = newUuid(random)
    const hostname = `h${serverId}`
    const full = { hostname, zone, plan: 'tiny', template: 'tiny-linux', desiredPower: 'stopped', ...spec }
    await put(Server, serverId, full, { state: 'stopped', ...status })
    const room = { cores: 1, memoryMebibytes: 64, storageGibibytes: 1 }
    if (hasRoom)
      await claim((tx) => claimServer(tx, { accountId, serverId, hostname, zone, ...room }, { now: AT, random }))
    return serverId
  }

/** A snapshot that is online, of a storage that is there. */
export const snapshot =
  (
    {
      spec = {},
      status = {},
    }: { readonly spec?: Partial<SnapshotSpec>; readonly status?: Partial<SnapshotStatus> } = {},
    { isDeleting = false } = {},
  ): Given =>
  async (scene) => {
    const [snapshotId, storageId] = [newUuid(random), await disk()(scene)]
    const claimed = { accountId: scene.accountId, snapshotId, storageId, bootServerId: undefined, isShared: false }
    await scene.claim((tx) => claimSnapshot(tx, { ...claimed, sizeGibibytes: 2 }))
    const kept = { state: 'online', sizeGibibytes: 2, isFrozen: false, ...status }
    return scene.put(Snapshot, snapshotId, { storageId, title: '', labels: {}, ...spec }, kept, { isDeleting })
  }

/** What a custom image is being made from. */
export const readByImage =
  (given: Given, field: 'snapshotId' | 'backupId'): Given =>
  async (scene) => {
    const id = await given(scene)
    const spec = { zone, title: 'Mine', labels: {}, source: { [field]: id } }
    await scene.put(CustomImage, newUuid(random), spec, { state: 'creating' })
    return id
  }

/** A backup that is complete, of a storage that is there unless given otherwise. */
export const backup =
  (
    { spec = {}, status = {} }: { readonly spec?: Partial<BackupSpec>; readonly status?: Partial<BackupStatus> } = {},
    { isDeleting = false } = {},
  ): Given =>
  async (scene) => {
    const full = { storageId: spec.storageId ?? (await disk()(scene)), title: '', kind: 'manual', ...spec }
    const kept = { state: 'online', zone, sizeGibibytes: 2, completedAt: AT.toISOString(), ...status }
    return scene.put(Backup, newUuid(random), full, kept, { isDeleting })
  }

/** Whose operation of the kind is under way. */
export const busy = (kind: OperationKind) => ({ spec: { operation: stanza(kind) } })
