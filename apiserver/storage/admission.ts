/** Storages that people make, change and delete past the API must satisfy its rules. Everything is checked and nothing
 *  is claimed: that is the controller's part, once the object is there. */
import { isDeepStrictEqual } from 'node:util'
import { badField, forbidden } from '../../domain/problem.ts'
import {
  requireAttachable,
  requireDeletableStorage,
  requireDetachable,
  requireResizable,
  STORAGE_GIBIBYTES_MAXIMUM,
} from '../../domain/storage-rules.ts'
import { attachStorage, claimStorage, requireEndable, resizeStorageClaim } from '../../db/storage/index.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage, storageFactsOf, type StorageSpec, type StorageStatus } from '../../resources/storage/index.ts'
import { admitDeletion, requireAccount, requireStanding } from '../admission/account-objects.ts'
import { type AdmissionParts, type AdmissionRules, type AdmittedChange, changesOf } from '../admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../admission/platform-fields.ts'
import { requireLabels, requirePrintableTitle } from '../admission/readable-fields.ts'
import { rehearse } from '../admission/rehearse.ts'
import { requireCopyZone, requireSchedule } from '../backup/index.ts'
import { storedOf } from '../list/stored.ts'
import { requireOpenZone } from './endpoints.ts'
import { resolveSource, SOURCE_READS } from './sources.ts'
import type { StorageObject } from './storages.ts'

const PLATFORM: PlatformFields = {
  noun: 'storage',
  finalizer: finalizerOf(Storage),
  goesWhen: 'nothing of the storage is left on any host',
}

const SOURCE_FIELDS = { source: 'spec.source', zone: 'spec.zone', size: 'spec.sizeGibibytes' }

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, storage: StorageObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: storageId, namespace = '' },
    spec,
  } = storage
  const accountId = await requireAccount(parts, storage, 'storages')
  denyPlatformFields(storage, undefined, PLATFORM)
  if (spec.isBoot) throw forbidden('Boot storages are made by the platform only, with their servers.')
  const { nodes, isFromBackup, copyOf } = resolveSource(
    { ...parts, namespace },
    { ...spec, source: spec.source },
    SOURCE_FIELDS,
  )
  requireReadable(spec)
  requireSchedule(parts, spec)
  requireCopies(parts, spec)
  requireOpenZone(parts, spec.zone)
  requireServer(parts, namespace, spec)
  await requireStanding(parts, accountId)
  const { zone, sizeGibibytes } = spec
  await rehearse(parts, (tx) =>
    claimStorage(tx, { accountId, storageId, zone, sizeGibibytes, nodes, isFromBackup, copyOf }, parts.clock.now()),
  )
  return [{ action: 'storage.create', changes: [] }]
}

/** Throws the Problem that the API would answer. */
async function validateChange(
  parts: AdmissionParts,
  storage: StorageObject,
  before: StorageObject,
): Promise<readonly AdmittedChange[]> {
  denyPlatformFields(storage, before, PLATFORM)
  const { spec } = storage
  const isChanged = (field: keyof StorageSpec): boolean => !isDeepStrictEqual(spec[field], before.spec[field])
  if (isChanged('isBoot')) throw badField('spec.isBoot', 'cannot be changed')
  if (isChanged('tier')) throw badField('spec.tier', 'cannot be changed: operators move the storage')
  if (isChanged('zone')) throw badField('spec.zone', 'cannot be changed')
  if (isChanged('backupSchedule')) requireSchedule(parts, spec)
  if (isChanged('backupCopyZone')) requireCopies(parts, spec)
  if (isChanged('title') || isChanged('labels') || isChanged('sizeGibibytes')) requireReadable(spec)
  const operations = [
    ...(isChanged('serverId') ? await validateServer(parts, storage, before) : []),
    ...(isChanged('sizeGibibytes') ? await validateSize(parts, storage, before) : []),
  ]
  const changes = changesOf(
    ['title', 'labels', 'backupSchedule', 'backupCopyZone', 'backupRetentionDays', 'isProtected'],
    spec,
    before.spec,
  )
  return [...operations, ...(changes.length > 0 ? [{ action: 'storage.update' as const, changes }] : [])]
}

async function validateServer(
  parts: AdmissionParts,
  { metadata: { name: storageId, namespace = '', uid = '' }, spec }: StorageObject,
  before: StorageObject,
): Promise<readonly AdmittedChange[]> {
  const facts = storageFactsOf(storedOf(before))
  const { serverId } = spec
  if (serverId === undefined) {
    requireDetachable(facts, false)
    return [{ action: 'storage.detach', changes: [] }]
  }
  requireAttachable(facts)
  requireServer(parts, namespace, spec)
  const accountId = accountOfNamespace(namespace)
  if (accountId !== undefined)
    await rehearse(parts, (tx) => attachStorage(tx, { accountId, storageId, serverId, volume: uid }))
  return [{ action: 'storage.attach', changes: [] }]
}

async function validateSize(
  parts: AdmissionParts,
  { metadata: { name: storageId, namespace = '' }, spec: { sizeGibibytes, isBoot } }: StorageObject,
  before: StorageObject,
): Promise<readonly AdmittedChange[]> {
  if (isBoot) throw forbidden('A boot storage grows through the API, or with the plan of its server.')
  requireResizable(storageFactsOf(storedOf(before)), sizeGibibytes)
  const accountId = accountOfNamespace(namespace)
  if (accountId !== undefined) {
    await requireStanding(parts, accountId)
    await rehearse(parts, (tx) => resizeStorageClaim(tx, { accountId, storageId, sizeGibibytes }))
  }
  return [{ action: 'storage.resize', changes: [] }]
}

/** A server of the same manifest may come later: the storage waits for it. */
function requireServer({ caches }: AdmissionParts, namespace: string, { serverId, zone }: StorageSpec): void {
  const server = serverId === undefined ? undefined : caches.of(Server).get({ namespace, name: serverId })
  if (server !== undefined && server.spec.zone !== zone)
    throw badField('spec.serverId', `the server is in zone ${server.spec.zone}, the storage in zone ${zone}`)
}

function requireCopies(parts: AdmissionParts, { zone, backupCopyZone: copyZone }: StorageSpec): void {
  if (copyZone !== undefined) requireCopyZone(parts, { zone, copyZone, field: 'spec.backupCopyZone' })
}

function requireReadable(spec: StorageSpec): void {
  requirePrintableTitle(spec)
  requireLabels(spec)
  if (spec.sizeGibibytes > STORAGE_GIBIBYTES_MAXIMUM)
    throw badField('spec.sizeGibibytes', `must be at most ${STORAGE_GIBIBYTES_MAXIMUM}`)
}

export const storageAdmission: AdmissionRules<StorageSpec, StorageStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: admitDeletion('storage.delete', async (before, parts) => {
    requireDeletableStorage(storageFactsOf(storedOf(before)))
    const { namespace = '', name: storageId } = before.metadata
    const accountId = accountOfNamespace(namespace)
    if (accountId !== undefined) await rehearse(parts, (tx) => requireEndable(tx, { accountId, storageId }))
  }),
  reads: [Zone, Server, ...SOURCE_READS],
  // A protected storage stays, whoever cleans up around it.
  validatesCleanUp: true,
}
