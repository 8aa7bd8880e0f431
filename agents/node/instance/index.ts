/** The reconciler of Instances: reads the host, and carries out what the plan says. Every effect may be repeated. */
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
  type InstanceSpec,
  type InstanceStatus,
} from '../../../resources/instance/index.ts'
import { type GuestDefinition, GuestStartFailed, type Hypervisor } from '../drivers/hypervisor/hypervisor.ts'
import type { VolumeStore } from '../drivers/storage/volume-store.ts'
import type { ImageState, TemplateStore } from '../images/template-store.ts'
import type { Ledger, LedgerEntry } from '../ledger.ts'
import { readMoveKey, readUserData } from '../secrets.ts'
import { metadataDocument, seedDisk, seedUserData } from '../serve/metadata.ts'
import type { KeyedMutex } from '../keyed-mutex.ts'
import type { Usage } from '../usage.ts'
import {
  DETAIL_CHARACTERS_MAXIMUM,
  planInstance,
  POWER_BUTTON_SECONDS,
  type InstanceEffects,
  type InstanceObject,
  type ObservedInstance,
} from './plan.ts'

export interface InstanceOptions {
  readonly store: Store
  readonly caches: Caches
  readonly hypervisor: Hypervisor
  readonly volumes: VolumeStore
  readonly images: TemplateStore
  readonly ledger: Ledger
  readonly diskLocks: KeyedMutex
  readonly usage: Pick<Usage, 'takeReading'>
  /** Guests reach the metadata service. */
  readonly isMetadataServed?: boolean
  readonly clock: Clock
  readonly log: Logger
  readonly namespace: string
}

/** Reached from outside through the host, where guests have no address of their own. */
const FORWARDED_PORTS = [22]
const VOLUME_INDEX = 'volume'
const volumesOf = ({ disks }: InstanceSpec): string[] => disks.map(({ volume }) => volume)

export function instanceReconciler(
  options: InstanceOptions,
): Reconciler<InstanceSpec, InstanceStatus, ObservedInstance> {
  const {
    store,
    caches,
    hypervisor,
    volumes,
    images,
    ledger,
    diskLocks,
    usage,
    isMetadataServed = false,
    clock,
    log,
    namespace,
  } = options
  const instances = caches.of(Instance)
  instances.addIndex(VOLUME_INDEX, ({ spec }) => volumesOf(spec))
  const lastPress = new Map<string, number>()
  const nowText = () => clock.now().toISOString()

  async function imageOf(spec: InstanceSpec): Promise<ImageState> {
    const bootVolume = await volumes.inspect(spec.disks[0]?.volume ?? '')
    return bootVolume?.source === undefined
      ? images.newest(spec.template)
      : images.version(bootVolume.source.name, bootVolume.source.version)
  }

  function change(name: string, update: (entry: LedgerEntry) => LedgerEntry): void {
    const entry = ledger.get(name)
    if (entry === undefined) throw new Error(`the ledger has no entry of ${name}`)
    ledger.put(name, update(entry))
  }

  /** An agent that comes back may see the past: nothing comes to life by a spec that is not the newest. */
  async function mustBeNewest(instance: InstanceObject): Promise<void> {
    const fresh = await store.get(Instance, keyOf(instance))
    const { uid, generation } = instance.metadata
    if (
      fresh === undefined ||
      fresh.metadata.deletionTimestamp !== undefined ||
      fresh.metadata.uid !== uid ||
      fresh.metadata.generation !== generation
    )
      throw new Unavailable(`the newest spec of ${instance.metadata.name}`, undefined)
  }

  /** One that is on its way out is none that a guest may begin with. */
  const isUsable = async (volume: string): Promise<boolean> =>
    caches.of(Volume).get({ namespace, name: volume })?.metadata.deletionTimestamp === undefined &&
    (await volumes.inspect(volume)) !== undefined

  /** The disks stay what they are until the guest has them. */
  const withDisks = <T>(spec: InstanceSpec, work: () => Promise<T>): Promise<T> =>
    diskLocks.runAll(volumesOf(spec), async () => {
      for (const volume of volumesOf(spec))
        if (!(await isUsable(volume))) throw new Unavailable(`disk ${volume}`, undefined)
      return work()
    })

  async function definitionOf(
    { metadata: { name, uid = '' }, spec }: InstanceObject,
    incarnation: number,
  ): Promise<GuestDefinition> {
    const image = await imageOf(spec)
    if (image.is !== 'ready') throw new Unavailable(`template ${spec.template}`, undefined)
    return {
      name,
      uid,
      incarnation,
      hostname: spec.hostname,
      cores: spec.cores,
      memoryMebibytes: spec.memoryMebibytes,
      boot: image.image.boot,
      disks: await Promise.all(
        spec.disks.map(async ({ volume, serial }) => ({ path: await volumes.pathOf(volume), serial })),
      ),
      interfaces: spec.interfaces.map(({ macAddress }) => ({ macAddress })),
      forwardedPorts: FORWARDED_PORTS,
      seed: seedDisk(
        metadataDocument(spec),
        seedUserData(await readUserData(store, namespace, spec), isMetadataServed && spec.metadata.isEnabled),
      ),
    }
  }

  async function start({ incarnation }: InstanceEffects['start'], instance: InstanceObject): Promise<void> {
    const { name } = instance.metadata
    const definition = await definitionOf(instance, incarnation)
    for (const { volume } of instance.spec.disks) await volumes.stopServing(volume)
    await mustBeNewest(instance)
    // Before the process, so that a crash in between costs an incarnation and never makes a second copy.
    change(name, ({ uid, generation, stop }) => ({
      uid,
      generation,
      incarnation,
      startedAt: nowText(),
      volumes: volumesOf(instance.spec),
      ...(stop === undefined ? {} : { stop }),
    }))
    lastPress.delete(name)
    try {
      await hypervisor.start(definition)
      log.info('guest started', { instance: name, incarnation })
    } catch (error) {
      if (!(error instanceof GuestStartFailed)) throw error
      log.warn('guest did not start', { instance: name, incarnation, error })
      change(name, (entry) => ({ ...entry, ended: { at: nowText(), reason: 'crashed', detail: error.message } }))
    }
  }

  const positionsOf = (mirrored: readonly string[], { disks }: InstanceSpec): number[] =>
    disks.flatMap(({ volume }, position) => (mirrored.includes(volume) ? [position] : []))

  async function receive({ attempt }: InstanceEffects['receive'], instance: InstanceObject): Promise<void> {
    const {
      metadata: { name },
      spec,
    } = instance
    const order = spec.receive
    if (order?.attempt !== attempt) return
    const key = await readMoveKey(store, namespace, order.secretName)
    const definition = await definitionOf(instance, spec.incarnation)
    await mustBeNewest(instance)
    change(name, (entry) => ({ ...entry, volumes: volumesOf(spec) }))
    try {
      await hypervisor.receive(definition, {
        id: order.id,
        attempt,
        key,
        mirroredDisks: positionsOf(order.mirroredVolumes, spec),
      })
      log.info('guest awaited', { instance: name, attempt })
    } catch (error) {
      if (!(error instanceof GuestStartFailed)) throw error
      log.warn('guest cannot be received', { instance: name, attempt, error })
      const nothing = {
        iteration: 0,
        transferredBytes: 0,
        totalBytes: 0,
        dirtyBytesPerSecond: 0,
        downtimeMilliseconds: 0,
      }
      change(name, (entry) => ({
        ...entry,
        transfer: {
          id: order.id,
          attempt,
          role: 'receive',
          phase: 'failed',
          ...nothing,
          detail: error.message.slice(0, DETAIL_CHARACTERS_MAXIMUM),
          reportedAt: nowText(),
        },
      }))
    }
  }

  async function send(
    { attempt }: InstanceEffects['send'],
    { metadata: { name }, spec }: InstanceObject,
  ): Promise<void> {
    if (spec.send?.attempt !== attempt) return
    const {
      id,
      host,
      port,
      diskPort,
      mirroredVolumes,
      secretName,
      downtimeLimitMilliseconds,
      isThrottled,
      timeoutSeconds,
    } = spec.send
    const key = await readMoveKey(store, namespace, secretName)
    await hypervisor.send(name, {
      id,
      attempt,
      key,
      host,
      port,
      diskPort,
      mirroredDisks: positionsOf(mirroredVolumes, spec),
      downtimeLimitMilliseconds,
      isThrottled,
      timeoutSeconds,
    })
    log.info('guest is being sent', { instance: name, attempt })
  }

  async function askToStop(
    { id }: InstanceEffects['askToStop'],
    { metadata: { name } }: InstanceObject,
  ): Promise<void> {
    const entry = ledger.get(name)
    if (entry?.stop?.id !== id) change(name, (known) => ({ ...known, stop: { id, since: nowText() } }))
    const now = clock.monotonicMilliseconds()
    if (now - (lastPress.get(name) ?? Number.NEGATIVE_INFINITY) < POWER_BUTTON_SECONDS * 1000 - 100) return
    lastPress.set(name, now)
    await hypervisor
      .pressPowerButton(name)
      .catch((error: unknown) => log.warn('power button not pressed', { instance: name, error }))
  }

  async function end(
    { reason, stopId }: InstanceEffects['end'],
    { metadata: { name } }: InstanceObject,
  ): Promise<void> {
    // Written first: once the guest is gone nothing but the ledger knows why.
    change(name, (entry) => ({ ...entry, ended: entry.ended ?? { at: nowText(), reason } }))
    await usage.takeReading(name)
    await hypervisor.destroy(name)
    lastPress.delete(name)
    log.info('guest ended', { instance: name, reason })
    if (stopId !== undefined)
      change(name, (entry) => ({
        ...entry,
        stop: { id: stopId, since: entry.stop?.since ?? nowText(), outcome: 'stopped' },
      }))
  }

  type Handlers = {
    readonly [Name in keyof InstanceEffects]: (input: InstanceEffects[Name], root: InstanceObject) => Promise<void>
  }
  const effects: Handlers = {
    start: (input, root) => withDisks(root.spec, () => start(input, root)),
    receive: (input, root) => withDisks(root.spec, () => receive(input, root)),
    askToStop,
    end,
    send,
    async accept({ generation, incarnation }, { metadata: { name, uid = '' } }) {
      const known = ledger.get(name)
      if (known?.uid !== uid) ledger.put(name, { uid, generation, incarnation })
      else if (incarnation === known.incarnation) ledger.put(name, { ...known, generation })
      // its guest is known, its start was forgotten
      else ledger.put(name, { uid, generation, incarnation, startedAt: nowText() })
    },
    async cancelSend(_input, { metadata: { name } }) {
      await hypervisor.cancelSend(name)
    },
    async noteTransfer({ transfer }, { metadata: { name } }) {
      change(name, (entry) => ({ ...entry, transfer }))
      log.info('guest transfer ended', {
        instance: name,
        role: transfer.role,
        attempt: transfer.attempt,
        phase: transfer.phase,
        detail: transfer.detail,
      })
    },
    async endReception({ transfer }, { metadata: { name } }) {
      change(name, (entry) => ({ ...entry, transfer }))
      await hypervisor.destroy(name)
      log.info('guest transfer ended', {
        instance: name,
        role: transfer.role,
        attempt: transfer.attempt,
        phase: transfer.phase,
        detail: transfer.detail,
      })
    },
    async prepare(_input, { spec }) {
      images.prepare(spec.template)
    },
    async giveUpStop({ id }, { metadata: { name } }) {
      change(name, (entry) => ({ ...entry, stop: { id, since: entry.stop?.since ?? nowText(), outcome: 'timed_out' } }))
    },
    async noteStopped({ id }, { metadata: { name } }) {
      change(name, (entry) => ({ ...entry, stop: { id, since: nowText(), outcome: 'stopped' } }))
    },
    async discard(_input, { metadata: { name } }) {
      await usage.takeReading(name)
      await hypervisor.destroy(name)
    },
    async forget(_input, { metadata: { name } }) {
      await usage.takeReading(name)
      await hypervisor.forget(name)
      ledger.remove(name)
    },
  }

  return {
    name: 'instance',
    type: Instance,
    finalizer: AGENT_FINALIZER,
    watches: [watch(Volume, ({ metadata }) => instances.by(VOLUME_INDEX, metadata.name).map(keyOf))],
    wakes(wake) {
      const stops = [
        hypervisor.onChange((name) => wake({ namespace, name })),
        images.onChange(() => instances.list().forEach((instance) => wake(keyOf(instance)))),
      ]
      return () => stops.forEach((stop) => stop())
    },
    async observe(instance) {
      const { name } = instance.metadata
      const held = await Promise.all(
        instance.spec.disks.map(async ({ volume }) => ({ volume, isHere: await isUsable(volume) })),
      )
      return {
        guest: await hypervisor.inspect(name),
        entry: ledger.get(name),
        hypervisor: hypervisor.kind,
        missingVolumes: held.filter(({ isHere }) => !isHere).map(({ volume }) => volume),
        image: await imageOf(instance.spec),
      }
    },
    plan: planInstance,
    // the plan names each with its own input
    effects: effects as unknown as NonNullable<Reconciler<InstanceSpec, InstanceStatus>['effects']>,
  }
}
