/** Assembles one node's agent. The same for a real host, a simulated one and the simulation. */
import { defined } from '../../domain/defined.ts'
import { DATABASE_TEMPLATE, MANAGED_TEMPLATE, machineOwnerOf } from '../../domain/managed-machine/rules.ts'
import { openCaches } from '../../kit/kube/caches.ts'
import type { Store } from '../../kit/kube/store.ts'
import { openController } from '../../kit/reconcile/loop.ts'
import { openControllerMetrics } from '../../kit/reconcile/metrics.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { Gauge, type Registry } from '../../kit/sys/metrics.ts'
import type { Random } from '../../kit/sys/random.ts'
import { Instance, nodeNamespace, type NodeReportSpec } from '../../resources/instance/index.ts'
import { ManagedMachine } from '../../resources/managed-machine/index.ts'
import { DiskReads } from './disk-reads.ts'
import type { Guest, GuestConsole, Hypervisor } from './drivers/hypervisor/hypervisor.ts'
import type { VolumeStore } from './drivers/storage/volume-store.ts'
import { newHeartbeat } from './heartbeat.ts'
import type { TemplateStore } from './images/template-store.ts'
import { imageReconciler } from './image/index.ts'
import type { ImageStore } from './images/image-store.ts'
import { backupJobReconciler } from './backup/jobs.ts'
import type { BackupWork } from './backup/work.ts'
import type { InstanceOptions } from './instance/guest-definition.ts'
import { instanceReconciler } from './instance/index.ts'
import type { Ledger } from './ledger.ts'
import { observationReconciler } from './observation.ts'
import { type ProbeHost, hostProbe } from './host-probe.ts'
import { readUserDataSecret } from './secrets.ts'
import { managedMachineReconciler } from './managed-machine/index.ts'
import { metadataDocument } from './serve/metadata.ts'
import type { RequestingGuest } from './serve/metadata-service.ts'
import { KeyedMutex } from '../../kit/sys/mutex.ts'
import { openServerMetrics } from './server-metrics.ts'
import { runTemplateSweep } from './template-sweep.ts'
import { openHoldings } from './unclaimed.ts'
import { openGuestUsage, type Usage } from './usage.ts'
import { volumeUser } from './volume/effects.ts'
import { openOwnership } from './volume/ownership.ts'
import { runOwnerSettling } from './volume/settle-owners.ts'
import { volumeReconciler } from './volume/index.ts'

export interface AgentOptions {
  readonly nodeName: string
  readonly store: Store
  readonly hypervisor: Hypervisor
  readonly volumes: VolumeStore
  readonly images: TemplateStore
  readonly customImages: ImageStore
  /** Whether guests reach the metadata service. */
  readonly isMetadataServed?: boolean
  readonly ledger: Ledger
  /** The node's report, without its guests. */
  readonly report: () => Promise<NodeReportSpec>
  /** Opens the host's backup work; without it the host has no place for backups. */
  readonly openBackups?: (parts: BackupParts) => BackupWork
  /** Probes over the network when absent. */
  readonly probeHost?: ProbeHost
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly registry: Registry
}

/** Parts that work on disks shares with work on guests. */
export interface BackupParts {
  readonly diskLocks: KeyedMutex
  readonly userOf: (volume: string) => Promise<string | undefined>
  /** Throws Unavailable while another host has the disk, which is then on shared storage. */
  readonly requireFree: (volume: string) => Promise<void>
  readonly namespace: string
}

export interface Agent {
  /** Runs until the signal aborts, then finishes the current turns. Guests keep running. */
  run(signal: AbortSignal): Promise<void>
  /** What the agent lacks to do its work; empty when nothing. */
  missing(): readonly string[]
  /** The console of an Instance of this node; undefined when there is none of the name. */
  consoleOf(instance: string): GuestConsole | undefined
  /** Name of the Instance with this hardware address. */
  instanceOf(macAddress: string): string | undefined
  /** Whether the Instance is the machine of a database. */
  isDatabase(instance: string): boolean
  /** Zone of the node, from its Instances; undefined while there are none. */
  zone(): string | undefined
  /** Traffic of the guests of this node. */
  readonly usage: Usage
  /** Metadata for the guest of an Instance; undefined when there is no Instance of the name. */
  metadataOf(instance: string): Omit<RequestingGuest, 'tokenKey'> | undefined
}

const isLive = ({ state }: Guest): boolean => state !== 'off' && state !== 'gone'

type ImageVersions = Pick<NodeReportSpec, 'managedImageVersion' | 'databaseImageVersion'>

async function imageVersionsOf(images: TemplateStore): Promise<ImageVersions> {
  const [managed, database] = await Promise.all(
    [MANAGED_TEMPLATE, DATABASE_TEMPLATE].map((name) => images.newest(name)),
  )
  return {
    ...(managed?.is === 'ready' ? { managedImageVersion: managed.image.version } : {}),
    ...(database?.is === 'ready' ? { databaseImageVersion: database.image.version } : {}),
  }
}

/** The node's report, with its guests and images. */
const reportOf = async ({ report, images, hypervisor }: AgentOptions): Promise<NodeReportSpec> => ({
  ...(await report()),
  templates: [...(await images.built())],
  ...(await imageVersionsOf(images)),
  guestCount: (await hypervisor.list()).filter(isLive).length,
})

function openGuestMetrics({ hypervisor, registry }: AgentOptions): void {
  new Gauge({
    name: 'svccloud_node_guests',
    help: 'Guests of this host by state',
    labelNames: ['state'],
    registers: [registry],
    async collect() {
      this.reset()
      for (const state of ['running', 'off', 'gone', 'receiving', 'handed_over']) this.set({ state }, 0)
      for (const { state } of await hypervisor.list().catch(() => [])) this.inc({ state })
    },
  })
  new Gauge({
    name: 'svccloud_node_guests_disk_full',
    help: 'Guests of this host that wait for free storage',
    registers: [registry],
    async collect() {
      const guests = await hypervisor.list().catch(() => [])
      this.set(guests.filter(({ isDiskFull }) => isDiskFull === true).length)
    },
  })
}

const LOOKS = [runOwnerSettling, runTemplateSweep]

/** Nothing happens before `run`. */
export function openAgent(options: AgentOptions): Agent {
  const { nodeName, store, hypervisor, clock, random, log, registry } = options
  const namespace = nodeNamespace(nodeName)
  const caches = openCaches({ store, clock, random, log, registry, selection: { namespace } })
  const usage = openGuestUsage(options)
  const holder = async () => ({ node: nodeName, bootId: (await options.report()).bootId })
  const ownership = openOwnership({ ...options, caches, namespace, holder })
  const shared = {
    ...options,
    caches,
    namespace,
    usage,
    ownership,
    diskLocks: new KeyedMutex(),
    diskReads: new DiskReads(),
  }
  const backups = options.openBackups?.({
    ...shared,
    userOf: (volume) => volumeUser(shared, volume),
    requireFree: ownership.requireFree,
  })
  const held = { ...shared, ...defined({ backups }) }
  const holdings = openHoldings(held)
  const parts = { ...held, reportHeld: () => holdings.reportNow() }
  const control = { store, caches, clock, random, log, metrics: openControllerMetrics(registry) }
  const controllers = [
    openController(imageReconciler(parts), control),
    openController(volumeReconciler(parts), control),
    openController(instanceReconciler(parts), control),
    ...(backups === undefined ? [] : [openController(backupJobReconciler({ ...parts, work: backups }), control)]),
    openController(managedMachineReconciler(parts), control),
    openController(observationReconciler(options.probeHost ?? hostProbe(clock)), control),
  ]
  const heartbeat = newHeartbeat({ ...parts, report: () => reportOf(options) })
  options.images.onChange(() => heartbeat.reportAgain())
  openGuestMetrics(options)
  openServerMetrics({ registry, hypervisor, specOf: (name) => caches.of(Instance).get({ namespace, name })?.spec })

  return {
    async run(signal) {
      caches.start(signal)
      const ended = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      const lookAround = async () => {
        await Promise.race([caches.ready(), ended])
        if (signal.aborted) return
        await Promise.all([holdings.run(signal), ...LOOKS.map((look) => look(parts, signal))])
      }
      /** Before the platform starts a lost host's guest elsewhere, it checks whether the host has reported a new boot.
       *  So the host always reports it before it starts a guest. */
      const work = async () => {
        await Promise.race([heartbeat.reported, ended])
        if (!signal.aborted)
          await Promise.all([...controllers.map((controller) => controller.run(signal)), lookAround()])
      }
      await Promise.all([heartbeat.run(signal), usage.run(signal), work()])
    },
    missing: () => [...(caches.isReady() ? [] : ['watches']), ...(heartbeat.isAlive() ? [] : ['heartbeat'])],
    usage,
    ...knowledgeOf(parts),
  }
}

/** Answers questions of other parts about the agent's Instances. */
function knowledgeOf({
  store,
  caches,
  hypervisor,
  namespace,
}: Pick<InstanceOptions, 'store' | 'caches' | 'hypervisor' | 'namespace'>): Pick<
  Agent,
  'metadataOf' | 'instanceOf' | 'isDatabase' | 'zone' | 'consoleOf'
> {
  return {
    metadataOf(name) {
      const spec = caches.of(Instance).get({ namespace, name })?.spec
      return (
        spec && {
          isEnabled: spec.metadata.isEnabled,
          document: metadataDocument(spec),
          userData: () => readUserDataSecret(store, namespace, spec),
        }
      )
    },
    instanceOf: (macAddress) =>
      caches
        .of(Instance)
        .list()
        .find(({ spec }) => spec.interfaces.some((own) => own.macAddress === macAddress))?.metadata.name,
    isDatabase: (instance) =>
      machineOwnerOf(caches.of(ManagedMachine).get({ namespace, name: instance })?.spec.managedBy)?.type === 'database',
    zone: () => caches.of(Instance).list()[0]?.spec.metadata.zone,
    consoleOf: (instance) =>
      caches.of(Instance).get({ namespace, name: instance }) === undefined ? undefined : hypervisor.console(instance),
  }
}
