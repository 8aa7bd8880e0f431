/** The reconciler of Volumes: the disk is on the host, or it is gone. */
import { Unavailable } from '../../../domain/problem.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { keyOf, type KubeObject } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import { watch, type Reconciler } from '../../../kit/reconcile/reconciler.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { Instance, Volume, type VolumeSpec, type VolumeStatus } from '../../../resources/instance.ts'
import type { Hypervisor } from '../drivers/hypervisor/hypervisor.ts'
import type { HeldVolume, VolumeStore } from '../drivers/storage/volume-store.ts'
import type { ImageState, TemplateStore } from '../images/template-store.ts'
import { AGENT_FINALIZER } from '../instance/index.ts'

export interface VolumeOptions {
  readonly caches: Caches
  readonly hypervisor: Hypervisor
  readonly volumes: VolumeStore
  readonly images: TemplateStore
  readonly log: Logger
  readonly namespace: string
}

export type VolumeObject = KubeObject<VolumeSpec, VolumeStatus>

export interface VolumeSeen {
  readonly held: HeldVolume | undefined
  /** Name of a guest that may have it open. */
  readonly user: string | undefined
  /** Undefined when it begins empty. */
  readonly image: ImageState | undefined
}

const RETRY_SECONDS = 30
const IN_USE_SECONDS = 1

/** Pure. A volume is never removed or made larger while a guest may have it open. */
export function planVolume(volume: VolumeObject, { held, user, image }: VolumeSeen): Action[] {
  const again: Action = { do: 'wait', seconds: 0, for: 'the next look' }
  if (volume.metadata.deletionTimestamp !== undefined) {
    if (user !== undefined) return [{ do: 'wait', seconds: IN_USE_SECONDS, for: `guest ${user} to let go` }]
    return [{ do: 'effect', name: 'remove', input: {} }, { do: 'finalized' }]
  }
  if (held !== undefined && held.sizeGibibytes < volume.spec.sizeGibibytes) {
    if (user !== undefined) return [status('ready', held.sizeGibibytes), { do: 'wait', seconds: IN_USE_SECONDS, for: `guest ${user} to let go` }]
    return [status('ready', held.sizeGibibytes), { do: 'effect', name: 'grow', input: {} }, again]
  }
  if (held !== undefined) return [status('ready', held.sizeGibibytes)]
  if (image?.is === 'unavailable') return [status('error', undefined, image.reason), { do: 'effect', name: 'prepare', input: {} }, { do: 'wait', seconds: RETRY_SECONDS, for: 'the template' }]
  if (image?.is === 'absent') return [status('creating', undefined, `template ${volume.spec.source?.name} is being prepared`), { do: 'effect', name: 'prepare', input: {} }, { do: 'wait', seconds: RETRY_SECONDS, for: 'the template' }]
  return [{ do: 'effect', name: 'create', input: {} }, again]
}

const status = (state: VolumeStatus['state'], sizeGibibytes?: number, detail?: string): Action => ({ do: 'status', status: { state, sizeGibibytes, detail } })

export function volumeReconciler({ caches, hypervisor, volumes, images, log, namespace }: VolumeOptions): Reconciler<VolumeSpec, VolumeStatus, VolumeSeen> {
  const instances = caches.of(Instance)

  async function userOf(name: string): Promise<string | undefined> {
    for (const instance of instances.inNamespace(namespace)) {
      const isUser = instance.spec.disks.some(({ volume }) => volume === name)
      if (isUser && await hypervisor.inspect(instance.metadata.name) !== undefined) return instance.metadata.name
    }
    return undefined
  }

  return {
    name: 'volume', type: Volume, finalizer: AGENT_FINALIZER,
    watches: [watch(Instance, ({ spec }) => spec.disks.map(({ volume }) => ({ namespace, name: volume })))],
    wakes: (wake) => images.onChange(() => caches.of(Volume).list().forEach((volume) => wake(keyOf(volume)))),
    async observe({ metadata: { name, deletionTimestamp }, spec }) {
      const held = await volumes.inspect(name)
      const mustBeFree = deletionTimestamp !== undefined || (held !== undefined && held.sizeGibibytes < spec.sizeGibibytes)
      return {
        held,
        user: mustBeFree ? await userOf(name) : undefined,
        image: spec.source === undefined ? undefined : await images.newest(spec.source.name),
      }
    },
    plan: planVolume,
    effects: {
      async create(_input, { metadata: { name }, spec }) {
        const image = spec.source === undefined ? undefined : await images.newest(spec.source.name)
        if (image !== undefined && image.is !== 'ready') throw new Unavailable(`template ${spec.source?.name}`, undefined)
        await volumes.create({ name, sizeGibibytes: spec.sizeGibibytes, ...(image === undefined ? {} : { source: image.image }) })
        log.info('volume created', { volume: name })
      },
      async grow(_input, { metadata: { name }, spec }) {
        await volumes.grow(name, spec.sizeGibibytes)
        log.info('volume grown', { volume: name, size_gibibytes: spec.sizeGibibytes })
      },
      async remove(_input, { metadata: { name } }) {
        await volumes.remove(name)
        log.info('volume removed', { volume: name })
      },
      async prepare(_input, { spec }) {
        if (spec.source !== undefined) images.prepare(spec.source.name)
      },
    },
  }
}
