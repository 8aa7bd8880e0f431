/** Chooses the hypervisor of this host: QEMU if it is installed, otherwise a simulation, which reports itself as such.
 */
import { mkdir, readFile, realpath } from 'node:fs/promises'
import { writeFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { NETWORK_FEATURES } from '../../domain/network/guest-network.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import { Outages } from '../../kit/sys/outages.ts'
import { letPass, type UserRange } from './drivers/hypervisor/guest-users.ts'
import type { Hypervisor } from './drivers/hypervisor/hypervisor.ts'
import { openQemu } from './drivers/hypervisor/qemu.ts'
import type { PortRange } from './drivers/hypervisor/listening-port.ts'
import { probeQemu, QEMU_BINARY } from './drivers/hypervisor/qemu-probe.ts'
import { newSimulatedHost } from './drivers/hypervisor/simulated.ts'
import type { SimulatedGuestRecord } from './drivers/hypervisor/simulated-guest.ts'
import { openTcpTransport } from './drivers/hypervisor/simulated-tcp.ts'
import { type GuestNetwork, isOvn, mustHaveOvnPrograms } from './drivers/network/ovn.ts'
import type { UserModeNetwork } from './drivers/network/user-mode.ts'
import { type CephLogin, type CephPool, CephUnreachable, openCephPool } from './drivers/storage/ceph-pool.ts'
import { openDiskServer } from './drivers/storage/disk-server.ts'
import { joinStores } from './drivers/storage/joined.ts'
import { openPool, type Pool, PoolMissing } from './drivers/storage/pool.ts'
import { openQcow2Volumes } from './drivers/storage/qcow2.ts'
import { openRbdVolumes } from './drivers/storage/rbd.ts'
import { simulatedVolumes } from './drivers/storage/simulated.ts'
import type { HeldVolume, VolumeStore } from './drivers/storage/volume-store.ts'
import { type ImageStore, openImageStore, simulatedImages } from './images/image-store.ts'
import { simulatedTemplates } from './images/simulated.ts'
import { openTemplateStore, type TemplateStore } from './images/template-store.ts'
import { ProgramFailed } from './run-program.ts'

export interface HostDriverOptions {
  readonly choice: 'auto' | 'qemu' | 'simulated'
  readonly folder: string
  readonly imageFolder: string
  readonly bootId: string
  /** `ovn`: guests are in the network of the zone. Otherwise QEMU gives each guest its own network, with or without
   *  access to the outside. */
  readonly guestNetwork: 'ovn' | 'outbound' | 'isolated'
  /** Namespaces of the guests in the network of the zone, such as /proc/1/ns, and the address at which other hosts
   *  reach it for moves of guests; the agent's own when absent. */
  readonly guestNamespace?: { readonly path: string; readonly host: string } | undefined
  /** Users of guests when the agent is root; none when absent. */
  readonly guestUsers?: UserRange | undefined
  /** Address and ports at which other hosts reach this one for moves of guests and disks; any ports when absent. */
  readonly migrationHost: string
  readonly migrationPorts?: PortRange | undefined
  /** Limit of the bandwidth of one guest that is being sent; unlimited when absent. */
  readonly migrationMebibytesPerSecond?: number | undefined
  /** Folder of the storage that the host shares with others. */
  readonly sharedFolder?: string | undefined
  /** A pool of a Ceph cluster that the host shares with others. */
  readonly ceph?: CephLogin | undefined
  /** How guests reach the metadata service; undefined when they do not. */
  readonly metadata?: UserModeNetwork['metadata']
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface HostDrivers {
  readonly hypervisor: Hypervisor
  readonly volumes: VolumeStore
  readonly images: TemplateStore
  readonly customImages: ImageStore
  /** Features of the host for NodeReport.spec.features. */
  readonly features: readonly string[]
}

/** ProgramFailed when QEMU was requested and is missing; Error when the host lacks something that its network needs. */
export async function openHostDrivers(options: HostDriverOptions): Promise<HostDrivers> {
  if (options.choice === 'simulated') return openSimulation(options)
  try {
    return await openQemuHost(options)
  } catch (error) {
    if (options.choice === 'qemu' || !(error instanceof ProgramFailed)) throw error
    options.log.warn('guests are only simulated: QEMU does not run here', { error })
    return openSimulation(options)
  }
}

async function openQemuHost({
  folder,
  imageFolder,
  bootId,
  guestNetwork,
  guestNamespace,
  guestUsers,
  metadata,
  migrationHost,
  migrationPorts,
  migrationMebibytesPerSecond,
  sharedFolder,
  ceph,
  clock,
  random,
  log,
}: HostDriverOptions): Promise<HostDrivers> {
  const machine = await probeQemu({ cacheFile: join(folder, 'accelerator'), bootId, clock })
  const network = networkOf({ guestNetwork, guestNamespace, metadata })
  if (isOvn(network)) await mustHaveOvnPrograms()
  await mkdir(imageFolder, { recursive: true })
  const [volumesFolder, backups, cephFolder] = [join(folder, 'volumes'), join(folder, 'backups'), join(folder, 'ceph')]
  for (const each of [volumesFolder, backups]) {
    await mkdir(each, { recursive: true, mode: 0o700 })
    await letPass(each)
  }
  const fixedFolders = await Promise.all([volumesFolder, imageFolder, backups].map((each) => realpath(each)))
  const [pools, cephPools]: [Pool[], CephPool[]] = [[], []]
  if (sharedFolder !== undefined) {
    const markerFile = join(folder, 'pool')
    await joinPool(pools, () => openPool({ path: sharedFolder, markerFile, random }), { clock, log })
  }
  if (ceph !== undefined)
    await joinPool(cephPools, () => openCephPool({ ...ceph, folder: cephFolder, clock, random }), { clock, log })
  const server = await openDiskServer({
    folder: join(folder, 'served'),
    host: migrationHost,
    ports: migrationPorts,
    clock,
  })
  const local = await openQcow2Volumes({ folder: volumesFolder, server, pools, imageFolder })
  const openRemote = () => openRbdVolumes({ folder: join(folder, 'rbd'), server, pools: cephPools })
  return {
    hypervisor: await openQemu({
      folder: join(folder, 'guests'),
      binary: QEMU_BINARY,
      machine,
      network,
      bootId,
      userRange: guestUsers,
      fileFolders: () => [...fixedFolders, ...pools.flatMap((pool) => [pool.folder, pool.templates])],
      ceph,
      migrationHost: guestNamespace?.host ?? migrationHost,
      migrationPorts,
      migrationMebibytesPerSecond,
      clock,
      log,
    }),
    volumes: ceph === undefined ? local : joinStores(local, await openRemote()),
    images: openTemplateStore({ folder: imageFolder, clock, log }),
    customImages: await openImageStore({ folder: join(folder, 'custom-images'), server, clock }),
    features: isOvn(network)
      ? [NETWORK_FEATURES.public, NETWORK_FEATURES.metadata]
      : [
          'ssh-forward',
          NETWORK_FEATURES[network.isOutboundAllowed ? 'outbound' : 'isolated'],
          ...(metadata === undefined ? [] : [NETWORK_FEATURES.metadata]),
        ],
  }
}

const networkOf = ({
  guestNetwork,
  guestNamespace,
  metadata,
}: Pick<HostDriverOptions, 'guestNetwork' | 'guestNamespace' | 'metadata'>): GuestNetwork =>
  guestNetwork === 'ovn'
    ? { kind: 'ovn', namespace: guestNamespace?.path }
    : { isOutboundAllowed: guestNetwork === 'outbound', metadata }

const POOL_RETRY_MILLISECONDS = 10_000
/** Storage that refuses the host, or is cut off, may never answer. */
const POOL_WAIT_MILLISECONDS = 10_000

/** Adds the pool, now or as soon as it is available. It must not wait longer: shared storage may refuse a host until
 *  the host has reported its new boot. Throws when the first attempt fails for another reason. */
async function joinPool<Joined>(
  pools: Joined[],
  open: () => Promise<Joined>,
  { clock, log }: Pick<HostDriverOptions, 'clock' | 'log'>,
): Promise<void> {
  const outages = new Outages({ log, clock }, 'shared storage is not there')
  const untilOpened = async (): Promise<Joined> => {
    for (;;) {
      try {
        return await open()
      } catch (error) {
        if (!(error instanceof PoolMissing || error instanceof CephUnreachable)) throw error
        outages.failed(error)
        await clock.sleep(POOL_RETRY_MILLISECONDS)
      }
    }
  }
  const isOver = new AbortController()
  const joining = untilOpened().then((pool) => void pools.push(pool))
  joining.catch((error: unknown) => log.error('shared storage cannot be used', { error }))
  try {
    await Promise.race([joining, clock.sleep(POOL_WAIT_MILLISECONDS, isOver.signal)])
  } finally {
    isOver.abort()
  }
}

interface SimulationState {
  readonly bootId: string
  readonly guests: readonly SimulatedGuestRecord[]
  readonly volumes: readonly HeldVolume[]
}

/** Simulated guests also outlive the agent: a file stores their state. */
async function openSimulation({
  folder,
  imageFolder,
  bootId,
  migrationHost,
  clock,
  random,
  log,
}: HostDriverOptions): Promise<HostDrivers> {
  const file = join(folder, 'simulated.json')
  const text = await readFile(file, 'utf8').catch(() => undefined)
  const before: SimulationState = text === undefined ? { bootId, guests: [], volumes: [] } : JSON.parse(text)
  let guests =
    before.bootId === bootId ? before.guests : before.guests.map((guest) => ({ ...guest, state: 'gone' as const }))
  const volumes = new Map(before.volumes.map((volume) => [volume.name, volume]))
  const save = () => {
    writeFileSync(
      `${file}.new`,
      JSON.stringify({ bootId, guests, volumes: [...volumes.values()] } satisfies SimulationState),
    )
    renameSync(`${file}.new`, file)
  }
  const host = newSimulatedHost({
    clock,
    random,
    guests,
    name: migrationHost,
    network: await openTcpTransport(migrationHost),
    onChange: (changed) => {
      guests = changed
      save()
    },
  })
  const disks = simulatedVolumes(volumes)
  return {
    hypervisor: host.attach(),
    volumes: {
      ...disks,
      // There are no data to copy.
      create: ({ from: _from, ...volume }) => disks.create(volume).then(save),
      grow: (name, sizeGibibytes) => disks.grow(name, sizeGibibytes).then(save),
      remove: (name) => disks.remove(name).then(save),
      release: (name) => disks.release(name).then(save),
    },
    images: simulatedTemplates(openTemplateStore({ folder: imageFolder, clock, log }).built),
    customImages: simulatedImages(),
    features: [],
  }
}
