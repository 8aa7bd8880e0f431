/** Guests, volumes and images that no object names: left by objects that were removed past their finalizer. They are
 *  removed only when a fresh list of the cluster that they were made for does not name them; what belongs to another
 *  cluster is left alone. */
import type { Caches } from '../../kit/kube/caches.ts'
import { Namespace, type ResourceType } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { Image, Instance, Volume } from '../../resources/instance/index.ts'
import type { Hypervisor } from './drivers/hypervisor/hypervisor.ts'
import type { VolumeStore } from './drivers/storage/volume-store.ts'
import type { ImageStore } from './images/image-store.ts'
import type { Ledger } from './ledger.ts'

export interface OrphanOptions {
  readonly store: Store
  readonly caches: Caches
  readonly hypervisor: Hypervisor
  readonly volumes: VolumeStore
  readonly customImages: ImageStore
  readonly ledger: Ledger
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
}

const INTERVAL_MILLISECONDS = 60_000
const TEMPLATE_INTERVAL_MILLISECONDS = 3_600_000

/** Looks at once and then every minute, until the signal. The caches must be ready. */
export async function runOrphanSweep(options: OrphanOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sweepOrphans(options).catch((error: unknown) => options.log.warn('orphans not looked for', { error }))
    await options.clock.sleep(INTERVAL_MILLISECONDS, signal)
  }
}

/** Looks at once and then every hour, until the signal, for what pools keep of templates that nothing needs. */
export async function runTemplateSweep(
  { volumes, clock, log }: Pick<OrphanOptions, 'volumes' | 'clock' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  while (volumes.removeUnusedTemplates !== undefined && !signal.aborted) {
    try {
      const names = await volumes.removeUnusedTemplates()
      if (names.length > 0) log.info('unused templates removed from their pool', { names })
    } catch (error) {
      log.warn('unused templates not looked for', { error })
    }
    await clock.sleep(TEMPLATE_INTERVAL_MILLISECONDS, signal)
  }
}

/** What is on the host and must have an object of its name. */
interface Held {
  readonly type: ResourceType
  readonly names: readonly string[]
  readonly message: string
  readonly remove: (name: string) => Promise<void>
}

const heldOn = async ({ hypervisor, volumes, customImages, ledger }: OrphanOptions): Promise<readonly Held[]> => [
  {
    type: Instance,
    names: (await hypervisor.list()).map(({ name }) => name),
    message: 'guest without an Instance is removed',
    async remove(name) {
      await hypervisor.forget(name)
      ledger.remove(name)
    },
  },
  {
    type: Volume,
    names: (await volumes.list()).map(({ name }) => name),
    message: 'volume without a Volume is removed',
    remove: (name) => volumes.release(name), // what lies in a pool is other hosts' too
  },
  {
    type: Image,
    names: await customImages.names(),
    message: 'image without an Image is removed',
    remove: (name) => customImages.remove(name),
  },
]

async function sweepOrphans(options: OrphanOptions): Promise<void> {
  const { store, caches, ledger, namespace, log } = options
  const held = await heldOn(options)
  const home = (await store.get(Namespace, { name: namespace }))?.metadata.uid
  if (home === undefined) return
  if (held.every(({ names }) => names.length === 0) && ledger.namespaceUid() !== home) ledger.setNamespaceUid(home)

  const unknown = held
    .map((one) => ({
      ...one,
      names: one.names.filter((name) => caches.of(one.type).get({ namespace, name }) === undefined),
    }))
    .filter(({ names }) => names.length > 0)
  if (unknown.length === 0) return
  if (ledger.namespaceUid() !== home)
    return log.error('guests of another cluster are on this host and stay', {
      names: unknown.flatMap(({ names }) => names),
    })

  for (const { type, names, message, remove } of unknown) {
    const objects = new Set((await store.list(type, { namespace })).items.map(({ metadata }) => metadata.name))
    for (const name of names.filter((one) => !objects.has(one))) {
      log.warn(message, { name })
      await remove(name)
    }
  }
}
