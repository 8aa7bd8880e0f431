/** Parts of the reconciler of Instances, and the data that each start and each observation needs. */
import { Unavailable } from '../../../domain/problem.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import type { Store } from '../../../kit/kube/store.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { Instance, Volume, type InstanceSpec } from '../../../resources/instance/index.ts'
import type { BackupWork } from '../backup/work.ts'
import type { DiskReads } from '../disk-reads.ts'
import type { GuestDefinition, GuestInterface, Hypervisor } from '../drivers/hypervisor/hypervisor.ts'
import type { VolumeStore } from '../drivers/storage/volume-store.ts'
import type { ImageState, TemplateStore } from '../images/template-store.ts'
import type { KeyedMutex } from '../../../kit/sys/mutex.ts'
import type { Ledger, LedgerEntry } from '../ledger.ts'
import { readUserDataSecret } from '../secrets.ts'
import { metadataDocument, seedDisk, seedUserData } from '../serve/metadata.ts'
import type { Usage } from '../usage.ts'
import { isOlderThanServing, isSuperseded } from '../volume/bytes.ts'
import type { Ownership } from '../volume/ownership.ts'
import type { InstanceObject } from './plan.ts'

export interface InstanceOptions {
  readonly store: Store
  readonly caches: Caches
  readonly hypervisor: Hypervisor
  readonly volumes: VolumeStore
  readonly images: TemplateStore
  readonly ledger: Ledger
  readonly diskLocks: KeyedMutex
  readonly ownership: Ownership
  /** Absent on hosts without a place for backups. */
  readonly backups?: Pick<BackupWork, 'yieldDisk'>
  readonly diskReads: DiskReads
  readonly usage: Pick<Usage, 'takeReading'>
  /** Reports how many guests the host holds. */
  readonly reportHeld: () => Promise<void>
  /** Whether guests reach the metadata service. */
  readonly isMetadataServed?: boolean
  readonly clock: Clock
  readonly log: Logger
  readonly namespace: string
}

/** Ports that are forwarded from the host, where guests have no separate address. */
const FORWARDED_PORTS = [22]

export const volumesOf = ({ disks }: InstanceSpec): string[] => disks.map(({ volume }) => volume)

/** The guest as the ledger records it. */
export const guestOf = ({
  server: { namespace, name },
  cores,
  memoryMebibytes,
}: InstanceSpec): LedgerEntry['guest'] => ({
  server: { namespace, name },
  cores,
  memoryMebibytes,
})

/** The interfaces in the form for the hypervisor. */
export const interfacesOf = ({ interfaces }: InstanceSpec): GuestInterface[] =>
  interfaces.map(({ macAddress, portName, slot }) => ({ macAddress, portName, slot }))

/** The disk has its own boot loader. */
const BOOTS_ITSELF: ImageState = { is: 'ready', image: { name: '', version: '', boot: undefined } }

/** The version of the template that the boot volume, or the disk of its image, was created from; the newest version if
 *  there is no boot volume. A volume from another source has its own boot loader. */
export async function imageOf(
  { volumes, images }: Pick<InstanceOptions, 'volumes' | 'images'>,
  spec: InstanceSpec,
): Promise<ImageState> {
  const bootVolume = await volumes.inspect(spec.disks[0]?.volume ?? '')
  if (bootVolume?.source !== undefined) return images.version(bootVolume.source.name, bootVolume.source.version)
  return bootVolume !== undefined || spec.template === '' ? BOOTS_ITSELF : images.newest(spec.template)
}

/** Whether a guest may start with the volume: it is on the host, its data are current, and it is not being deleted. */
export const isUsable = async (
  { caches, volumes, ledger, namespace }: Pick<InstanceOptions, 'caches' | 'volumes' | 'ledger' | 'namespace'>,
  volume: string,
): Promise<boolean> => {
  const object = caches.of(Volume).get({ namespace, name: volume })
  return (
    !isSuperseded(ledger, volume) &&
    object?.metadata.deletionTimestamp === undefined &&
    (object === undefined || !isOlderThanServing(ledger.bytesOf('volume', volume), object)) &&
    (await volumes.inspect(volume)) !== undefined
  )
}

/** Does the work while nothing else changes the disks. Throws Unavailable when one of them is not usable. */
export const withDisks = <T>(options: InstanceOptions, spec: InstanceSpec, work: () => Promise<T>): Promise<T> =>
  options.diskLocks.runAll(volumesOf(spec), async () => {
    for (const volume of volumesOf(spec))
      if (!(await isUsable(options, volume))) throw new Unavailable(`disk ${volume}`, undefined)
    return work()
  })

/** Throws Unavailable unless this is the newest spec. The cache of an agent that has just connected may be stale, and a
 *  stale spec must not start a guest. */
export async function requireNewest(
  { store }: Pick<InstanceOptions, 'store'>,
  instance: InstanceObject,
): Promise<void> {
  const newest = (await store.get(Instance, keyOf(instance)))?.metadata
  const { uid, generation } = instance.metadata
  if (
    newest === undefined ||
    newest.deletionTimestamp !== undefined ||
    newest.uid !== uid ||
    newest.generation !== generation
  )
    throw new Unavailable(`the newest spec of ${instance.metadata.name}`, undefined)
}

/** The definition for the hypervisor. Throws Unavailable while the template is not ready. */
export async function definitionOf(
  options: InstanceOptions,
  { metadata: { name, uid = '' }, spec }: InstanceObject,
  incarnation: number,
): Promise<GuestDefinition> {
  const { store, volumes, namespace, isMetadataServed = false } = options
  const image = await imageOf(options, spec)
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
      spec.disks.map(async ({ volume, serial, slot }) => ({ path: await volumes.pathOf(volume), serial, slot })),
    ),
    interfaces: interfacesOf(spec),
    forwardedPorts: FORWARDED_PORTS,
    seed: seedDisk(
      metadataDocument(spec),
      seedUserData(await readUserDataSecret(store, namespace, spec), isMetadataServed && spec.metadata.isEnabled),
    ),
  }
}
