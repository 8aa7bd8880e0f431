/** Simulated stores as processes of the platform reach them: what the drivers of the single host and of the gateway
 *  are, with what goes wrong on the way. */
import { Unavailable } from '../../domain/problem.ts'
import type { ObjectStorageOffer } from '../../integrations/object-storage/configuration.ts'
import type { ObjectStorage, ObjectStorageControl } from '../../integrations/object-storage/control.ts'
import { s3Of } from './object-s3.ts'
import { type ObjectStores, put, reach, type SimulatedStore, stateOf } from './object-stores.ts'
import type { SimulatedProcess } from './scheduler.ts'

export const offerTo = (process: SimulatedProcess, stores: ObjectStores): ObjectStorageOffer => ({
  stores: [stores.gateway, stores.single].map((store) => serviceOf(stores, store, process)),
  obstacle: 'none is there',
})

function serviceOf(stores: ObjectStores, store: SimulatedStore, process: SimulatedProcess): ObjectStorage {
  const { backend } = store
  const host = backend === 'rgw' ? 'gateway' : 'objects'
  return {
    backend,
    durability: backend === 'rgw' ? 'replicated' : 'single_copy',
    zones: store.zones,
    endpointOf: (zone) => `https://${zone}.${host}.example`,
    upstreamOf: (zone) => ({ url: `https://${zone}.${host}.example`, authority: null }),
    certificateAuthority: null,
    takesArchives: backend === 'svc-s3-single',
    control: controlOf(stores, store, process),
    openS3: (_zone, credentials) => s3Of(stores, store, process, credentials),
  }
}

function controlOf(stores: ObjectStores, store: SimulatedStore, process: SimulatedProcess): ObjectStorageControl {
  const { tenants } = store
  const ask = <Answer>(work: () => Answer): Promise<Answer> =>
    reach(stores, store, process, work).catch((error: unknown) => {
      throw new Unavailable('the object storage', error)
    })
  return {
    putTenant: (id, settings) => ask(() => put(store, id, settings)),
    getTenant: (id, isFresh = false) =>
      ask(() => {
        const tenant = tenants.get(id)
        return tenant && stateOf(stores, store, tenant, isFresh)
      }),
    removeTenant: (id, isPurged = false) =>
      ask(() => {
        if (!isPurged && (tenants.get(id)?.buckets.size ?? 0) > 0) return false
        tenants.delete(id)
        return true
      }),
  }
}
