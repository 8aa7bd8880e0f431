/** Backups that are written, restored, verified and deleted while everything is shaken, and what must hold of them
 *  afterwards. */
import type { KubeObject } from '../../kit/kube/object.ts'
import { Backup } from '../../resources/backup/index.ts'
import { BackupJob } from '../../resources/backup-job/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../resources/storage/index.ts'
import { ZONES } from './catalog.ts'
import { stopServerOf } from './images.ts'
import type { Account, Send } from './requests.ts'
import type { World } from './world.ts'

type StorageObject = KubeObject<StorageSpec, StorageStatus>

export function runBackups(world: World, accounts: readonly Account[], send: Send, isOver: () => boolean): void {
  const { scheduler, admin } = world
  const { random } = scheduler
  const backups = new Map<string, Set<string>>(accounts.map(({ id }) => [id, new Set()]))
  const customer = () =>
    scheduler.repeat({ least: 300, most: 3_000 }, isOver, async () => {
      const account = scheduler.pick(accounts)
      if (account === undefined) return
      const { items } = await admin
        .list(Storage, { namespace: accountNamespace(account.id) })
        .catch(() => ({ items: [] }))
      const storage = scheduler.pick(items)?.metadata.name
      const backup = scheduler.pick([...(backups.get(account.id) ?? [])])
      const dice = random.fraction()
      if (storage !== undefined && (backup === undefined || dice < 0.3)) {
        const made = await send(account, 'POST', `/v1/storages/${storage}/backups`, {})
        const id = (made as { readonly backup?: { readonly id: string } } | undefined)?.backup?.id
        if (id !== undefined) backups.get(account.id)?.add(id)
      } else if (backup === undefined) return
      else if (dice < 0.36 && storage !== undefined)
        await send(account, 'PATCH', `/v1/storages/${storage}`, {
          backup_schedule: `${(scheduler.now().getUTCMinutes() + 1) % 60} * * * *`,
        })
      else if (dice < 0.43 && storage !== undefined)
        await send(account, 'PATCH', `/v1/storages/${storage}`, {
          backup_copy_zone: random.fraction() < 0.8 ? (scheduler.pick(ZONES) ?? null) : null,
        })
      else if (dice < 0.49) await send(account, 'POST', `/v1/backups/${backup}/verify`)
      else if (dice < 0.7) {
        const fit = await restorable(world, account, items)
        const path = `/v1/backups/${scheduler.pick(fit) ?? backup}/restore`
        await send(account, 'POST', path, { force: random.fraction() < 0.5 })
      } else if (dice < 0.87) await send(account, 'POST', '/v1/storages', { source_backup_id: backup })
      else await send(account, 'DELETE', `/v1/backups/${backup}`)
    })
  void customer()
  void customer()
}

/** Backups that are there, of storages that no guest has. */
async function restorable({ admin }: World, { id }: Account, storages: readonly StorageObject[]) {
  const { items } = await admin.list(Backup, { namespace: accountNamespace(id) }).catch(() => ({ items: [] }))
  return items
    .filter(({ spec, status }) => {
      const of = storages.find(({ metadata }) => metadata.name === spec.storageId)
      return status?.state === 'online' && of?.status?.state === 'online' && of.spec.serverId === undefined
    })
    .map(({ metadata }) => metadata.name)
}

/** A disk that is to be restored waits for its server to be stopped, for half a day: people do that. */
export async function stopServersOfRestores({ admin }: World): Promise<void> {
  for (const { metadata, spec, status } of (await admin.list(Backup)).items) {
    if (activeOperationOf({ spec, status })?.kind !== 'backup.restore') continue
    const { namespace = '' } = metadata
    await stopServerOf(admin, { namespace, name: spec.storageId })
  }
}

/** No work of a backup goes on, and none is on its way out. */
export async function isBackedUp({ admin }: World): Promise<boolean> {
  const { items } = await admin.list(Backup)
  const { items: jobs } = await admin.list(BackupJob)
  return jobs.length === 0 && items.every(({ metadata }) => metadata.deletionTimestamp === undefined)
}

/** What is online can be restored, and is of the disk that it says; nothing is in a store that nobody knows; what was
 *  made from a backup begins with what that held. */
export async function checkBackups({
  admin,
  backups: stores,
  hosts,
  disks,
}: Pick<World, 'admin' | 'backups' | 'hosts' | 'disks'>): Promise<string[]> {
  if (stores === undefined) return []
  const { items: backups } = await admin.list(Backup)
  const { items: storages } = await admin.list(Storage)
  const violations = backups.flatMap(({ metadata: { name, namespace }, spec, status }) => {
    if (status?.state !== 'online') return []
    const kept = stores.kept.get(name)
    if (kept === undefined || stores.inZone.get(status.zone ?? spec.zone ?? '')?.has(name) !== true)
      return [`backup ${name} is online, and no store of its zone has it`]
    const of = storages.find(({ metadata }) => metadata.namespace === namespace && metadata.name === spec.storageId)
    return of === undefined || of.metadata.uid === kept.volume
      ? []
      : [`backup ${name} is of storage ${spec.storageId}, and holds what disk ${kept.volume} held`]
  })
  for (const { metadata, spec, status } of backups) {
    const kept = stores.kept.get(metadata.name)
    const original = spec.copyOf === undefined ? undefined : stores.kept.get(spec.copyOf.name)
    if (status?.state === 'online' && spec.copyOf !== undefined && kept?.content !== original?.content)
      violations.push(`backup ${metadata.name} holds something else than ${spec.copyOf.name}, whose copy it is`)
  }
  const known = new Set(backups.map(({ metadata }) => metadata.name))
  for (const [zone, store] of stores.inZone)
    for (const name of store.keys())
      if (!known.has(name)) violations.push(`backup ${name} is left in the store of ${zone}`)
  for (const { metadata, spec, status } of storages) {
    const kept = spec.source?.kind === 'backup' ? stores.kept.get(spec.source.id) : undefined
    if (spec.source?.kind !== 'backup' || status?.state !== 'online' || status.restore !== undefined) continue
    const host = hosts.find(({ volumes }) => volumes.has(metadata.uid ?? ''))
    const held = host?.volumes.get(metadata.uid ?? '')
    const is = host && held && disks.contentOf(host.name, held).is
    if (kept === undefined) violations.push(`storage ${metadata.name} is made from a backup that never was complete`)
    else if (is === undefined || is < kept.content)
      violations.push(`storage ${metadata.name} is made from a backup of ${kept.content}, and holds ${is}`)
  }
  return violations
}
