/** The object storage controller: what people enabled with kubectl gets its row, whatever a row says the store is told,
 *  and what the store holds is written down. It goes when it holds nothing. */
import { unavailable } from '../../domain/problem.ts'
import { requireStanding } from '../../db/account/index.ts'
import {
  addObjectStorage,
  findObjectStorage,
  lockObjectStorage,
  objectStorageOwner,
  type ObjectStorageRow,
  recordObjectStorageUsage,
  removeObjectStorage,
  type TenantFacts,
  tenantFacts,
  tenantOf,
} from '../../db/object-storage/index.ts'
import { listKubernetesRequests } from '../../db/request/index.ts'
import { offerIn } from '../../kit/object-storage/configuration.ts'
import { fingerprintOf, type ObjectStorage as Served, type TenantState } from '../../kit/object-storage/control.ts'
import { newTenantKeys } from '../../kit/object-storage/keys.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { watch } from '../../kit/reconcile/reconciler.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import { accountNamespace } from '../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../resources/labels.ts'
import {
  ObjectStorage,
  type ObjectStorageSpec,
  type ObjectStorageStatus,
} from '../../resources/object-storage/index.ts'
import { findAccountOf } from '../account.ts'
import { auditEffect } from '../audit.ts'
import type { BackupAccess } from '../backup-key.ts'
import { controller, type IntentHandler } from '../controller.ts'
import { orUnavailable } from '../database.ts'
import type { EffectsOn } from '../effects.ts'
import { requireNewest } from '../newest.ts'
import type { Parts } from '../parts.ts'
import { withRefusalCondition } from '../refusal.ts'
import { type Observed, type ObjectStorageEffects, plan } from './plan.ts'

type ObjectStorageObject = KubeObject<ObjectStorageSpec, ObjectStorageStatus>
type AllParts = Parts & BackupAccess

/** What serves new tenants of the zone, or those of the backend. */
const servedIn = (
  { objectStorage = { stores: [], obstacle: 'the controllers are not told of any' } }: Pick<Parts, 'objectStorage'>,
  zone: string,
  backend?: Served['backend'],
): Served | { readonly obstacle: string } => offerIn(objectStorage, zone, backend)

async function observe(parts: AllParts, { metadata, spec, status }: ObjectStorageObject): Promise<Observed> {
  const { db, caches, clock } = parts
  const { namespace = '', name: id, uid = '', generation = 0, deletionTimestamp } = metadata
  const after = status?.observedGeneration ?? 0
  const requests =
    generation > after ? await orUnavailable(listKubernetesRequests(db, uid, { after, upTo: generation })) : []
  const accountId = await findAccountOf(db, namespace)
  const row = accountId === undefined ? undefined : await orUnavailable(findObjectStorage(db, accountId, id))
  const served = servedIn(parts, spec.zone, row?.backend)
  const isZone = caches.of(Zone).get({ name: spec.zone }) !== undefined
  const base = { accountId, requests, isZone }
  if ('obstacle' in served) return { ...base, row, obstacle: served.obstacle, tenant: undefined, wanted: undefined }
  if (row === undefined) return { ...base, row, endpoint: served.endpointOf(spec.zone), tenant: undefined }
  const tenant = await served.control.getTenant(tenantOf(row), deletionTimestamp !== undefined)
  return {
    ...base,
    row,
    endpoint: served.endpointOf(spec.zone),
    tenant,
    wanted: {
      ...(await orUnavailable(tenantFacts(db, row, clock.now()))),
      secretFingerprint: fingerprintOf(openSecret(parts, row)),
    },
  }
}

/** Throws 503 without sealing keys. */
function openSecret({ sealing }: BackupAccess, row: ObjectStorageRow): string {
  if (sealing?.isAvailable !== true)
    throw unavailable('not_configured', 'Object storage needs sealing keys, which this deployment does not have.')
  return sealing.open(row.sealedSecret, objectStorageOwner(row.accountId, row.id))
}

/** How a change that was left half-way shows: by the annotation. */
const objectStorageIntents: IntentHandler = {
  resourceType: 'object_storage',
  async wasApplied({ store }, { operationId, accountId, resource }) {
    const object = await store.get(ObjectStorage, { namespace: accountNamespace(accountId), name: resource.id })
    return object?.metadata.annotations?.[LAST_CHANGE_ANNOTATION] === operationId
  },
  release: (tx, { accountId, resource }) => removeObjectStorage(tx, { accountId, id: resource.id }),
}

export const objectStorageController = controller<ObjectStorageEffects>()({
  name: 'object-storage',
  resource: ObjectStorage,
  sharding: 'by-zone',
  finalizer: finalizerOf(ObjectStorage),
  intent: objectStorageIntents,
  plan,
  reads: [Zone],
  writes: [],
  open: (parts: AllParts) => ({
    watches: [watch(Zone, () => [])],
    observe: (object) => observe(parts, object),
    effects: effectsOf(parts),
  }),
})

const effectsOf = (parts: AllParts): EffectsOn<ObjectStorageEffects, ObjectStorageSpec, ObjectStorageStatus> => ({
  // A row that is made for an object which has gone meanwhile would stay for ever.
  open: withRefusalCondition('Claimed', async ({ accountId, id, zone }, object) => {
    await requireNewest(parts.store, ObjectStorage, object)
    const { secretAccessKey, ...keys } = newTenantKeys(parts.random)
    if (parts.sealing?.isAvailable !== true)
      throw unavailable('not_configured', 'Object storage needs sealing keys, which this deployment does not have.')
    const sealedSecret = parts.sealing.seal(secretAccessKey, objectStorageOwner(accountId, id))
    const served = servedIn(parts, zone)
    if ('obstacle' in served) throw unavailable('not_configured', `Zone ${zone} has no object storage.`)
    const { backend } = served
    const createdAt = parts.clock.now()
    await orUnavailable(
      parts.db.transaction().execute(async (tx) => {
        await requireStanding(tx, accountId, createdAt)
        await addObjectStorage(tx, { ...keys, id, accountId, zone, sealedSecret, backend, createdAt })
      }),
    )
    return undefined
  }),
  // The row is locked meanwhile: what is told is what it says, whoever changes it.
  bringUp: async ({ row }) => {
    const served = servedIn(parts, row.zone, row.backend)
    if ('obstacle' in served) return undefined
    await orUnavailable(
      parts.db.transaction().execute(async (tx) => {
        const locked = await lockObjectStorage(tx, row)
        if (locked === undefined) return
        const facts: TenantFacts = await tenantFacts(tx, locked, parts.clock.now())
        await served.control.putTenant(tenantOf(row), { ...facts, secretAccessKey: openSecret(parts, locked) })
      }),
    )
    return undefined
  },
  record: async ({ row, tenant }) => {
    await orUnavailable(recordObjectStorageUsage(parts.db, row, usageOf(tenant)))
    return undefined
  },
  remove: async ({ row }) => {
    const served = servedIn(parts, row.zone, row.backend)
    if ('obstacle' in served || !(await served.control.removeTenant(tenantOf(row)))) return undefined
    await orUnavailable(removeObjectStorage(parts.db, row))
    return undefined
  },
  audit: auditEffect(parts),
})

const usageOf = ({ usedBytes, objectCount, measuredAt }: TenantState) => ({
  usedBytes,
  objectCount,
  measuredAt: new Date(measuredAt),
})
