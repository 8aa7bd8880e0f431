/** Guests and volumes that no object names: left by objects that were removed past their finalizer. They go only when a
 *  fresh list of the
 *  very cluster that they were made for does not name them; what another cluster does not know is none of its business.
 */
import type { Caches } from '../../kit/kube/caches.ts'
import { Namespace } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { Instance, Volume } from '../../resources/instance/index.ts'
import type { Hypervisor } from './drivers/hypervisor/hypervisor.ts'
import type { VolumeStore } from './drivers/storage/volume-store.ts'
import type { Ledger } from './ledger.ts'

export interface OrphanOptions {
  readonly store: Store
  readonly caches: Caches
  readonly hypervisor: Hypervisor
  readonly volumes: VolumeStore
  readonly ledger: Ledger
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
}

const INTERVAL_MILLISECONDS = 60_000

/** Looks at once and then every minute, until the signal. The caches must be ready. */
export async function runOrphanSweep(options: OrphanOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sweepOrphans(options).catch((error: unknown) => options.log.warn('orphans not looked for', { error }))
    await options.clock.sleep(INTERVAL_MILLISECONDS, signal)
  }
}

async function sweepOrphans({
  store,
  caches,
  hypervisor,
  volumes,
  ledger,
  namespace,
  log,
}: OrphanOptions): Promise<void> {
  const guests = (await hypervisor.list()).map(({ name }) => name)
  const held = (await volumes.list()).map(({ name }) => name)
  const home = (await store.get(Namespace, { name: namespace }))?.metadata.uid
  if (home === undefined) return
  if (guests.length === 0 && held.length === 0 && ledger.namespaceUid() !== home) ledger.setNamespaceUid(home)

  const unknownGuests = guests.filter((name) => caches.of(Instance).get({ namespace, name }) === undefined)
  const unknownVolumes = held.filter((name) => caches.of(Volume).get({ namespace, name }) === undefined)
  if (unknownGuests.length === 0 && unknownVolumes.length === 0) return
  if (ledger.namespaceUid() !== home)
    return log.error('guests of another cluster are on this host and stay', {
      guests: unknownGuests,
      volumes: unknownVolumes,
    })

  const instances = new Set((await store.list(Instance, { namespace })).items.map(({ metadata }) => metadata.name))
  for (const name of unknownGuests.filter((guest) => !instances.has(guest))) {
    log.warn('guest without an Instance is removed', { instance: name })
    await hypervisor.forget(name)
    ledger.remove(name)
  }
  const volumeObjects = new Set((await store.list(Volume, { namespace })).items.map(({ metadata }) => metadata.name))
  for (const name of unknownVolumes.filter((volume) => !volumeObjects.has(volume))) {
    log.warn('volume without a Volume is removed', { volume: name })
    await volumes.release(name) // what lies in a pool is other hosts' too
  }
}
