/** Making, reading, changing and deleting storages, and giving them to servers. */
import { badField, notFound, unavailable } from '../../domain/problem.ts'
import {
  requireAttachable,
  requireDeletableStorage,
  requireDetachable,
  requireResizable,
} from '../../domain/storage-rules.ts'
import { findServerClaims } from '../../db/server/index.ts'
import * as claims from '../../db/storage/index.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { replacing } from '../../kit/kube/merge-patch.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import { accountNamespace } from '../../resources/index.ts'
import { isHostUnreachable } from '../../resources/server/index.ts'
import {
  Storage,
  attachStorage,
  createStorage,
  deleteStorage,
  detachStorage,
  getStorage,
  listStorages,
  resizeStorage,
  type StorageSpec,
  updateStorage,
} from '../../resources/storage/index.ts'
import { requireBackupZone, requireCopyZone } from '../backup/index.ts'
import { clonedFrom } from '../../resources/operation/index.ts'
import { create } from '../change/create.ts'
import { operate } from '../change/operate.ts'
import type { Parts } from '../parts.ts'
import { changeObject } from '../plain/change-object.ts'
import { etagOfObject, getObject, labelsOfQuery, listObjects } from '../plain/objects.ts'
import type { ServerObject, Servers } from '../server/index.ts'
import { resolveSource, SOURCE_READS, sourceOf } from './sources.ts'
import type { StorageObject, Storages } from './storages.ts'

export type StorageParts = Parts & { readonly servers: Servers; readonly storages: Storages }

export function storageEndpoints(parts: StorageParts): readonly Endpoint[] {
  for (const type of SOURCE_READS) parts.caches.of(type)
  return [
    getObject(parts.storages, getStorage),
    listObjects(parts, parts.storages, listStorages, ({ zone, server_id, label }) => ({
      labels: labelsOfQuery(label),
      fields: { zone, server_id },
    })),
    customerEndpoint(createStorage, (call) => createEndpoint(parts, call)),
    customerEndpoint(updateStorage, (call) => update(parts, call)),
    customerEndpoint(deleteStorage, (call) =>
      operate(parts, parts.storages, call, {
        kind: 'storage.delete',
        validate: requireDeletableStorage,
        spec: {},
        claim: (tx) => claims.requireEndable(tx, { accountId: call.caller.accountId, storageId: call.params.id }),
      }),
    ),
    customerEndpoint(attachStorage, (call) => attach(parts, call)),
    customerEndpoint(detachStorage, (call) => detach(parts, call)),
    customerEndpoint(resizeStorage, (call) => resize(parts, call)),
  ]
}

async function createEndpoint(parts: StorageParts, call: Call<typeof createStorage, Customer>): Promise<Answer> {
  const { caller, body, now } = call
  const { accountId } = caller
  const { source, field } = sourceOf(body)
  const { zone, sizeGibibytes, nodes, isFromBackup, copyOf } = resolveSource(
    { ...parts, namespace: accountNamespace(accountId) },
    { source, zone: body.zone, sizeGibibytes: body.size_gibibytes },
    { source: field, zone: 'zone', size: 'size_gibibytes' },
  )
  requireOpenZone(parts, zone)
  if (body.backup_schedule != null) requireBackupZone(parts, zone)
  const serverId = body.server_id ?? undefined
  if (serverId !== undefined) await findServer(parts, { accountId, serverId, zone })
  const server = serverId === undefined ? undefined : await findServerClaims(parts.db, { accountId, serverId })
  return create(parts, parts.storages, call, {
    kind: 'storage.create',
    finalizer: finalizerOf(Storage),
    detail: {
      zone,
      size_gibibytes: String(sizeGibibytes),
      tier: body.tier,
      ...(source === undefined ? {} : { source: `${source.kind}:${source.id}` }),
    },
    gibibytes: sizeGibibytes,
    specOf: (operation): StorageSpec => ({
      zone,
      title: body.title,
      sizeGibibytes,
      tier: body.tier,
      ...(source === undefined ? {} : { source }),
      ...(serverId === undefined ? {} : { serverId }),
      isBoot: false,
      labels: body.labels,
      backupRetentionDays: body.backup_retention_days,
      ...(body.backup_schedule == null ? {} : { backupSchedule: body.backup_schedule }),
      isProtected: body.is_protected,
      operation: { ...operation, ...clonedFrom(source) },
    }),
    claim: (tx, storageId) =>
      claims.claimStorage(
        tx,
        {
          ...{ accountId, storageId, zone, sizeGibibytes, nodes, isFromBackup, copyOf },
          preferredNode: server?.placement.node,
        },
        now,
      ),
    release: (tx, storageId) => claims.deleteStorageClaim(tx, { accountId, storageId }),
  })
}

/** Throws 400 for a zone that is not there, 503 for one that takes nothing new. */
export function requireOpenZone({ caches }: Pick<Parts, 'caches'>, name: string): void {
  const zone = caches.of(Zone).get({ name })
  if (zone === undefined) throw badField('zone', 'there is no such zone')
  if (zone.spec.isClosed) throw unavailable('no_capacity', 'The zone takes nothing new.')
}

/** Throws 404 for a server that is not the account's, 400 for one of another zone, and 503 while its host does not
 *  answer. */
async function findServer(
  { servers }: StorageParts,
  { accountId, serverId, zone }: { readonly accountId: string; readonly serverId: string; readonly zone: string },
): Promise<ServerObject> {
  const server = servers.find(accountId, serverId) ?? (await servers.read(accountId, serverId))
  if (server.metadata.deletionTimestamp !== undefined || server.spec.operation?.kind === 'server.delete')
    throw notFound('server')
  if (server.spec.zone !== zone)
    throw badField('server_id', `the server is in zone ${server.spec.zone}, the storage in zone ${zone}`)
  if (isHostUnreachable(server.status))
    throw unavailable('host_unreachable', 'The host of the server does not answer. Try again when it is back.', {
      resource: { type: 'server', id: serverId },
    })
  return server
}

async function update(parts: StorageParts, call: Call<typeof updateStorage, Customer>): Promise<Answer> {
  const { body } = call
  const written = await changeObject(parts, parts.storages, call, {
    changes: ({ spec }) => {
      if (body.backup_schedule != null) requireBackupZone(parts, spec.zone)
      if (body.backup_copy_zone != null)
        requireCopyZone(parts, { zone: spec.zone, copyZone: body.backup_copy_zone, field: 'backup_copy_zone' })
      return changesOf(spec, body)
    },
    patch: ({ spec }) => ({
      ...(body.title === undefined ? {} : { title: body.title }),
      ...(body.is_protected === undefined ? {} : { isProtected: body.is_protected }),
      ...(body.backup_retention_days === undefined ? {} : { backupRetentionDays: body.backup_retention_days }),
      ...(body.backup_schedule === undefined ? {} : { backupSchedule: body.backup_schedule }),
      ...(body.backup_copy_zone === undefined ? {} : { backupCopyZone: body.backup_copy_zone }),
      ...(body.labels === undefined ? {} : { labels: replacing(spec.labels, body.labels) }),
    }),
  })
  return {
    status: 200,
    body: { storage: parts.storages.viewOf(written) },
    headers: { etag: etagOfObject(written) },
  }
}

function changesOf(spec: StorageSpec, body: Call<typeof updateStorage, Customer>['body']) {
  const fields = [
    ['title', spec.title, body.title],
    ['labels', spec.labels, body.labels],
    ['backup_schedule', spec.backupSchedule ?? null, body.backup_schedule],
    ['backup_copy_zone', spec.backupCopyZone ?? null, body.backup_copy_zone],
    ['backup_retention_days', spec.backupRetentionDays, body.backup_retention_days],
    ['is_protected', spec.isProtected, body.is_protected],
  ] as const
  return fields.flatMap(([field, before, after]) =>
    after === undefined || JSON.stringify(before) === JSON.stringify(after) ? [] : [{ field, before, after }],
  )
}

async function attach(parts: StorageParts, call: Call<typeof attachStorage, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: storageId },
    body: { server_id: serverId },
  } = call
  const storage = await parts.storages.read(accountId, storageId)
  await findServer(parts, { accountId, serverId, zone: storage.spec.zone })
  const volume = uidOf(storage)
  return operate(parts, parts.storages, call, {
    kind: 'storage.attach',
    validate: requireAttachable,
    gibibytes: storage.spec.sizeGibibytes,
    changes: () => [{ field: 'server_id', before: null, after: serverId }],
    spec: { serverId },
    claim: (tx) => claims.attachStorage(tx, { accountId, storageId, serverId, volume }),
    release: (tx, { stored }) =>
      claims.withdrawAttachment(tx, { accountId, storageId, serverId }, stored?.spec.serverId === serverId),
  })
}

const uidOf = ({ metadata: { uid = '' } }: StorageObject): string => uid

const detach = (parts: StorageParts, call: Call<typeof detachStorage, Customer>): Promise<Answer> => {
  const { force } = call.body
  return operate(parts, parts.storages, call, {
    kind: 'storage.detach',
    validate: (storage) => requireDetachable(storage, force),
    changes: ({ spec }) => [{ field: 'server_id', before: spec.serverId ?? null, after: null }],
    spec: { serverId: null },
    arguments: ({ target: { spec, status } }) => ({
      force: String(force),
      server_id: spec.serverId ?? status?.serverId ?? '',
    }),
  })
}

async function resize(parts: StorageParts, call: Call<typeof resizeStorage, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: storageId },
    body: { size_gibibytes: sizeGibibytes },
  } = call
  const { isBoot, serverId } = (await parts.storages.read(accountId, storageId)).spec
  return operate(parts, parts.storages, call, {
    kind: 'storage.resize',
    validate: (storage) => requireResizable(storage, sizeGibibytes),
    changes: (before) => [{ field: 'size_gibibytes', before: before.spec.sizeGibibytes, after: sizeGibibytes }],
    spec: { sizeGibibytes },
    claim: (tx) => claims.holdSize(tx, { accountId, storageId }, { sizeGibibytes, isBoot, serverId }),
    release: (tx, { stored }) => claims.withdrawResize(tx, { accountId, storageId }, stored?.spec),
  })
}
