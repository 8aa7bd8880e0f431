/** The reconciler of Volumes: the disk is on the host, or it is gone. */
import { Unavailable } from '../../../domain/problem.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import type { Store } from '../../../kit/kube/store.ts'
import { watch, type Reconciler } from '../../../kit/reconcile/reconciler.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import {
  AGENT_FINALIZER,
  Instance,
  Volume,
  type VolumeSpec,
  type VolumeStatus,
} from '../../../resources/instance/index.ts'
import type { Hypervisor } from '../drivers/hypervisor/hypervisor.ts'
import type { VolumeStore } from '../drivers/storage/volume-store.ts'
import type { TemplateStore } from '../images/template-store.ts'
import type { Ledger } from '../ledger.ts'
import { readMoveKey } from '../secrets.ts'
import type { KeyedMutex } from '../keyed-mutex.ts'
import { Copies } from './copies.ts'
import { planVolume, type VolumeEffects, type VolumeObject, type ObservedVolume } from './plan.ts'

export interface VolumeOptions {
  readonly store: Store
  readonly caches: Caches
  readonly hypervisor: Hypervisor
  readonly volumes: VolumeStore
  readonly images: TemplateStore
  readonly ledger: Pick<Ledger, 'get'>
  readonly diskLocks: KeyedMutex
  readonly clock: Clock
  readonly log: Logger
  readonly namespace: string
}

export function volumeReconciler({
  store,
  caches,
  hypervisor,
  volumes,
  images,
  ledger,
  diskLocks,
  clock,
  log,
  namespace,
}: VolumeOptions): Reconciler<VolumeSpec, VolumeStatus, ObservedVolume> {
  const instances = caches.of(Instance)
  const copies = new Copies(clock)
  /** The operation that a disk is served for. */
  const servedFor = new Map<string, string>()

  /** The guest that has it, or may be given it at any moment. */
  async function userOf(name: string): Promise<string | undefined> {
    for (const {
      metadata: { name: instance },
      spec,
    } of instances.inNamespace(namespace)) {
      const isUser =
        spec.disks.some(({ volume }) => volume === name) || ledger.get(instance)?.volumes?.includes(name) === true
      if (isUser && (await hypervisor.inspect(instance)) !== undefined) return instance
    }
    return undefined
  }

  /** Nobody begins to use it meanwhile. */
  const unused = (name: string, work: () => Promise<void>): Promise<void> =>
    diskLocks.run(name, async () => {
      const user = await userOf(name)
      if (user !== undefined) throw new Unavailable(`disk ${name}, which guest ${user} has`, undefined)
      await work()
    })

  const servingOf = (name: string) => {
    const [id, at] = [servedFor.get(name), volumes.servedAt(name)]
    return id === undefined || at === undefined ? undefined : { id, ...at }
  }

  type Handlers = {
    readonly [Name in keyof VolumeEffects]: (input: VolumeEffects[Name], root: VolumeObject) => Promise<void>
  }
  const effects: Handlers = {
    async create(_input, { metadata: { name }, spec: { sizeGibibytes, source, origin, pool } }) {
      const image = source?.kind === 'template' ? await images.newest(source.name) : undefined
      if (image !== undefined && image.is !== 'ready') throw new Unavailable(`template ${source?.name}`, undefined)
      await volumes.create({
        name,
        sizeGibibytes,
        ...(image === undefined ? {} : { source: image.image }),
        ...(origin === undefined ? {} : { origin }),
        ...(pool === undefined ? {} : { pool }),
      })
      log.info('volume created', { volume: name })
    },
    async adopt({ pool }, { metadata: { name } }) {
      await volumes.adopt(name, pool)
      log.info('volume taken over', { volume: name, pool })
    },
    async copy({ host, port }, { metadata: { name }, spec: { sizeGibibytes, copyFrom, origin, pool } }) {
      if (copyFrom === undefined) return
      const key = await readMoveKey(store, namespace, copyFrom.secretName)
      await copies.begin(name, `${host}:${port}`, async (signal) => {
        await volumes.create(
          {
            name,
            sizeGibibytes,
            from: { host, port, key },
            ...(origin === undefined ? {} : { origin }),
            ...(pool === undefined ? {} : { pool }),
          },
          signal,
        )
        log.info('volume copied', { volume: name })
      })
    },
    async grow(_input, { metadata: { name }, spec }) {
      await unused(name, async () => {
        await volumes.stopServing(name)
        await volumes.grow(name, spec.sizeGibibytes)
      })
      log.info('volume grown', { volume: name, size_gibibytes: spec.sizeGibibytes })
    },
    async serve({ id }, { metadata: { name }, spec: { serve } }) {
      if (serve?.id !== id) return
      const key = await readMoveKey(store, namespace, serve.secretName)
      await unused(name, async () => void (await volumes.serve(name, key)))
      servedFor.set(name, id)
      log.info('volume served', { volume: name })
    },
    async stopServing(_input, { metadata: { name } }) {
      await volumes.stopServing(name)
      servedFor.delete(name)
    },
    async remove(_input, { metadata: { name }, spec: { pool } }) {
      await copies.end(name)
      await unused(name, async () => {
        // Also when this host has never held it: it ends the data for one that was lost.
        if (pool !== undefined && (await volumes.inspect(name)) === undefined) await volumes.adopt(name, pool)
        await volumes.remove(name)
      })
      log.info('volume removed', { volume: name })
    },
    async release(_input, { metadata: { name } }) {
      await copies.end(name)
      await unused(name, () => volumes.release(name))
      log.info('volume left to its pool', { volume: name })
    },
    async prepare(_input, { spec }) {
      if (spec.source?.kind === 'template') images.prepare(spec.source.name)
    },
  }

  return {
    name: 'volume',
    type: Volume,
    finalizer: AGENT_FINALIZER,
    watches: [watch(Instance, ({ spec }) => spec.disks.map(({ volume }) => ({ namespace, name: volume })))],
    wakes(wake) {
      const stops = [
        images.onChange(() =>
          caches
            .of(Volume)
            .list()
            .forEach((volume) => wake(keyOf(volume))),
        ),
        copies.onChange((name) => wake({ namespace, name })),
      ]
      return () => stops.forEach((stop) => stop())
    },
    async observe({ metadata: { name, deletionTimestamp }, spec }) {
      const held = await volumes.inspect(name)
      const mustBeFree =
        deletionTimestamp !== undefined ||
        spec.serve !== undefined ||
        (held !== undefined && held.sizeGibibytes < spec.sizeGibibytes)
      return {
        held,
        user: mustBeFree ? await userOf(name) : undefined,
        image: spec.source?.kind === 'template' ? await images.newest(spec.source.name) : undefined,
        serving: servingOf(name),
        copy: copies.state(name),
        pool:
          spec.pool === undefined
            ? undefined
            : { isMounted: volumes.pools.includes(spec.pool), hasVolume: await volumes.isInPool(name, spec.pool) },
      }
    },
    plan: planVolume,
    // the plan names each with its own input
    effects: effects as unknown as NonNullable<Reconciler<VolumeSpec, VolumeStatus>['effects']>,
  }
}
