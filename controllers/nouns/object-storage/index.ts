/** The object storage controller. It creates the row of what was enabled with kubectl, configures the store with what
 *  the row says, and records what the store holds. An object storage is deleted once it holds nothing. */
import { Unavailable, unavailable } from '../../../domain/problem.ts'
import { requireStanding } from '../../../db/account/index.ts'
import {
  addObjectStorage,
  findObjectStorage,
  objectStorageOwner,
  type ObjectStorageRow,
  recordObjectStorageUsage,
  removeObjectStorage,
  type TenantFacts,
  tenantFacts,
  tenantOf,
} from '../../../db/object-storage/index.ts'
import { listKubernetesRequests } from '../../../db/request/index.ts'
import { type ObjectStorageOffer, offerIn } from '../../../integrations/object-storage/configuration.ts'
import { fingerprintOfSecret, type TenantState } from '../../../integrations/object-storage/control.ts'
import {
  forgetTenant,
  sendTenantSettings,
  type TenantStores,
  tenantStoresOf,
} from '../../../integrations/object-storage/tenant-stores.ts'
import { newTenantKeys } from '../../../integrations/object-storage/keys.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { type EffectReport, watch } from '../../../kit/reconcile/reconciler.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import {
  ObjectStorage,
  type ObjectStorageSpec,
  type ObjectStorageStatus,
} from '../../../resources/object-storage/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import type { BackupAccess } from '../../kit/backup-key.ts'
import { controller, type IntentHandler } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { requireNewest } from '../../kit/newest.ts'
import { wasOperationApplied } from '../../kit/operation/intent.ts'
import type { Parts } from '../../kit/parts.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { abandonMove, goOnMoving, inTurnOf, prepareMove, switchOver, whyMoveWaits } from './move.ts'
import { MOVED, MOVING, type Observed, type ObjectStorageEffects, plan } from './plan.ts'
import { openSecret } from './secret.ts'

export { openObjectStorageMetrics } from './metrics.ts'

type ObjectStorageObject = KubeObject<ObjectStorageSpec, ObjectStorageStatus>
type AllParts = Parts & BackupAccess

const NOWHERE: ObjectStorageOffer = { stores: [], obstacle: 'the controllers have none configured' }

/** The stores that know the tenant of the row, or the store that a new row would get. */
function tenantStoresIn(
  { objectStorage = NOWHERE, clock }: Pick<Parts, 'objectStorage' | 'clock'>,
  zone: string,
  row: ObjectStorageRow | undefined,
): TenantStores | { readonly obstacle: string } {
  if (row !== undefined) return tenantStoresOf(objectStorage, row, clock.now())
  const served = offerIn(objectStorage, zone)
  return 'obstacle' in served ? served : { keeper: served, entrance: served }
}

async function observe(parts: AllParts, { metadata, spec, status }: ObjectStorageObject): Promise<Observed> {
  const { db, caches, clock } = parts
  const { namespace = '', name: id, uid = '', generation = 0, deletionTimestamp } = metadata
  const after = status?.observedGeneration ?? 0
  const requests =
    generation > after ? await orUnavailable(listKubernetesRequests(db, uid, { after, upTo: generation })) : []
  const accountId = await findAccountOf(db, namespace)
  const row = accountId === undefined ? undefined : await orUnavailable(findObjectStorage(db, accountId, id))
  const stores = tenantStoresIn(parts, spec.zone, row)
  const isZone = caches.of(Zone).get({ name: spec.zone }) !== undefined
  const base = { accountId, requests, isZone }
  if ('obstacle' in stores) return { ...base, row, obstacle: stores.obstacle, tenant: undefined, wanted: undefined }
  const { keeper, entrance, upstream } = stores
  const endpoint = entrance.endpointOf(spec.zone)
  if (row === undefined) return { ...base, row, endpoint, tenant: undefined }
  const wanted = {
    ...(await orUnavailable(tenantFacts(db, row, clock.now()))),
    secretFingerprint: fingerprintOfSecret(openSecret(parts, row)),
  }
  try {
    const tenant = await keeper.control.getTenant(tenantOf(row), deletionTimestamp !== undefined)
    const there =
      entrance === keeper ? undefined : { tenant: await entrance.control.getTenant(tenantOf(row)), upstream }
    return { ...base, row, endpoint, tenant, wanted, ...(there && { entrance: there }) }
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    return { ...base, row, endpoint, tenant: undefined, wanted, isAway: true }
  }
}

const objectStorageIntents: IntentHandler = {
  resourceType: 'object_storage',
  wasApplied: wasOperationApplied(ObjectStorage),
  // Only enabling it has claimed anything.
  async release(tx, { accountId, resource, audit }) {
    if (audit.action === 'object_storage.enable') await removeObjectStorage(tx, { accountId, id: resource.id })
  },
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
  // A row that is created for an object which is deleted meanwhile would never be removed.
  open: withRefusalCondition('Claimed', async ({ accountId, id, zone }, object) => {
    await requireNewest(parts.store, ObjectStorage, object)
    const { secretAccessKey, ...keys } = newTenantKeys(parts.random)
    if (parts.sealing?.isAvailable !== true)
      throw unavailable('not_configured', 'Object storage needs sealing keys, which this deployment does not have.')
    const sealedSecret = parts.sealing.seal(secretAccessKey, objectStorageOwner(accountId, id))
    const stores = tenantStoresIn(parts, zone, undefined)
    if ('obstacle' in stores) throw unavailable('not_configured', `Zone ${zone} has no object storage.`)
    const { backend } = stores.keeper
    const createdAt = parts.clock.now()
    await orUnavailable(
      parts.db.transaction().execute(async (tx) => {
        await requireStanding(tx, accountId, { now: createdAt, areAddressesConfirmed: parts.areAddressesConfirmed })
        await addObjectStorage(tx, { ...keys, id, accountId, zone, sealedSecret, backend, createdAt })
      }),
    )
    return undefined
  }),
  bringUp: async ({ row }) => {
    await inTurnOf(parts, row, async (_turn, current) => {
      const stores = tenantStoresIn(parts, row.zone, current)
      if (current === undefined || 'obstacle' in stores) return
      const facts: TenantFacts = await orUnavailable(tenantFacts(parts.db, current, parts.clock.now()))
      await sendTenantSettings(stores, tenantOf(row), { ...facts, secretAccessKey: openSecret(parts, current) })
    })
    return undefined
  },
  record: async ({ row, tenant }) => {
    await orUnavailable(recordObjectStorageUsage(parts.db, row, usageOf(tenant)))
    return undefined
  },
  // A process that wants to configure a store with it waits meanwhile, and then finds no row: no deleted tenant is
  // created again.
  remove: async ({ row }) => {
    await inTurnOf(parts, row, async (turn, current) => {
      if (current === undefined) return
      const stores = tenantStoresIn(parts, row.zone, current)
      if ('obstacle' in stores || !(await forgetTenant(stores, tenantOf(row)))) return
      await orUnavailable(
        parts.db.transaction().execute(async (tx) => {
          await turn.require(tx)
          await removeObjectStorage(tx, row)
        }),
      )
    })
    return undefined
  },
  prepareMove: withRefusalCondition(MOVED, ({ row, operationId }) =>
    orSaysWhy(parts, row, () => prepareMove(parts, row, operationId)),
  ),
  goOnMoving: withRefusalCondition(MOVED, ({ row }) => orSaysWhy(parts, row, () => goOnMoving(parts, row))),
  switchOver: async ({ row }) => {
    await switchOver(parts, row)
    return undefined
  },
  abandonMove: async ({ row }) => {
    await abandonMove(parts, row)
    return undefined
  },
  audit: auditEffect(parts),
})

/** A step that a store prevented is repeated; meanwhile its owner reads the reason. */
async function orSaysWhy(parts: AllParts, row: ObjectStorageRow, step: () => Promise<void>): Promise<EffectReport> {
  try {
    await step()
    return grantedCondition(MOVING)
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    parts.log?.info('a move of object storage waits', { error })
    const message = await whyMoveWaits(parts, row, error)
    return { conditions: [{ type: MOVING, status: 'False', reason: 'Waiting', message }] }
  }
}

const usageOf = ({ usedBytes, objectCount, measuredAt }: TenantState) => ({
  usedBytes,
  objectCount,
  measuredAt: new Date(measuredAt),
})
