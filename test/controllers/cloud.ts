/** A cloud in one process for tests of the controllers: an embedded Kubernetes API, a real PostgreSQL, hosts with
 *  simulated guests
 *  and their real agents, that share their storage where there is more than one. Time runs ten times as fast, so that
 *  guests that take a second to boot do not. */
import { openAgent } from '../../agents/node/loop.ts'
import { ledgerInMemory } from '../../agents/node/ledger.ts'
import { type SimulatedStore, simulatedBackups } from '../../agents/node/backup/simulated.ts'
import { newSimulatedNetwork } from '../../agents/node/drivers/hypervisor/simulated-network.ts'
import { newSimulatedHost, type SimulatedHost } from '../../agents/node/drivers/hypervisor/simulated.ts'
import { newSimulatedStorage, simulatedVolumes } from '../../agents/node/drivers/storage/simulated.ts'
import type { HeldVolume } from '../../agents/node/drivers/storage/volume-store.ts'
import { simulatedImages } from '../../agents/node/images/image-store.ts'
import { simulatedTemplates } from '../../agents/node/images/simulated.ts'
import type { TemplateStore } from '../../agents/node/images/template-store.ts'
import { openSweepRate } from '../../controllers/kit/sweep-rate.ts'
import { type ClaimSweep, sweepClaims } from '../../controllers/nouns/claim/index.ts'
import type { OpenStorageAccess } from '../../controllers/fencing/effects.ts'
import { CLAIMANT_KINDS } from '../../controllers/nouns/claim/kinds.ts'
import { openControllers, runControllers } from '../../controllers/index.ts'
import type { HostClusters } from '../../controllers/nouns/kubernetes-host/index.ts'
import { openSimulatedOvn, type SimulatedOvn } from '../../controllers/network/ovn/simulated-ovn.ts'
import type { Parts } from '../../controllers/kit/parts.ts'
import type { Shard } from '../../controllers/kit/shard.ts'
import { noteAccountNamespace } from '../../db/account/index.ts'
import type { Database } from '../../db/kit/open.ts'
import { defined } from '../../domain/defined.ts'
import { accountExists } from '../../db/server/index.ts'
import { ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import { nodeUser } from '../../embedded/kubernetes/server/credentials.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import type { OrganisationPlatform } from '../../integrations/organisation-platform/platform.ts'
import type { ControlPlanesOffer } from '../../integrations/control-planes/configuration.ts'
import type { ObjectStorage } from '../../integrations/object-storage/control.ts'
import type { TestTrust } from '../../integrations/public-internet/lookup.ts'
import { openCaches } from '../../kit/kube/caches.ts'
import { openClient } from '../../kit/kube/client.ts'
import { installCrds } from '../../kit/kube/crd.ts'
import { crds } from '../../controllers/kit/crds.ts'
import { makeNamespace } from '../../kit/kube/namespaces.ts'
import { Event, Namespace } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import { openControllerMetrics } from '../../kit/reconcile/metrics.ts'
import { type Clock, systemClock } from '../../kit/sys/clock.ts'
import { type Logger, silentLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { createSealing } from '../../kit/sys/sealing.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { accountNamespaceOf } from '../../resources/index.ts'
import { BACKUPS_FEATURE, backupSourceFeature, OBJECT_BACKUPS_FEATURE } from '../../resources/backup-job/index.ts'
import { Image, Instance, NodeReport, Volume } from '../../resources/instance/index.ts'
import { SYSTEM_NAMESPACE } from '../../resources/kit/labels.ts'
import { Node } from '../../resources/node/index.ts'
import { Plan, Region, Template, Zone } from '../../resources/catalog/index.ts'
import { openSimulatedControlPlanes, type SimulatedControlPlanes } from '../control-planes.ts'
import { openSimulatedObjectStorage, type SimulatedObjectStorage } from '../object-storage.ts'
import { giveStanding } from '../accounts.ts'
import { TINY_LINUX, TINY_PLAN } from '../catalog.ts'

const SPEED = 10
const DAY_MILLISECONDS = 86_400_000
const startedAt = systemClock.now().getTime()
/** What is done at night is not done by itself while tests run, whenever they do. */
const noon = (Math.floor(startedAt / DAY_MILLISECONDS) + 1 / 2) * DAY_MILLISECONDS
export const fastClock: Clock = {
  now: () => new Date(noon + (systemClock.now().getTime() - startedAt) * SPEED),
  monotonicMilliseconds: () => systemClock.monotonicMilliseconds() * SPEED,
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds / SPEED, signal),
  after: (milliseconds, work) => systemClock.after(milliseconds / SPEED, work),
}

export interface Cloud {
  /** Kubernetes as kubectl uses it. */
  readonly kubectl: Store
  readonly ovn: SimulatedOvn
  readonly objectStorage: SimulatedObjectStorage
  /** Of object storage that is replicated, in the zones that tests name. */
  readonly gateway: SimulatedObjectStorage
  readonly gatewayZones: string[]
  readonly controlPlanes: SimulatedControlPlanes
  /** The first host. */
  readonly host: SimulatedHost
  readonly volumes: Map<string, HeldVolume>
  /** What is on shared storage. */
  readonly pool: ReadonlyMap<string, HeldVolume>
  /** Addresses that shared storage serves no more. */
  readonly blocked: ReadonlySet<string>
  /** Complete backups in the store of the first zone. */
  readonly backups: SimulatedStore
  backupsIn(zone: string): SimulatedStore
  /** Which volumes began as which backups. */
  readonly filled: ReadonlyMap<string, string>
  hostOf(node: string): SimulatedHost
  /** Starts the controllers; the answer stops them. */
  startControllers(life?: Life, options?: ControllersStart): () => Promise<void>
  /** Starts controllers that die after so many writes, each followed by the next as a supervisor does, until so many
   *  have died: the one after them lives. */
  startMortals(writesMaximum: number, deathsMaximum?: number, options?: ControllersStart): Mortals
  startAgent(node?: string, options?: AgentStart): () => Promise<void>
  /** Its namespace, and leave to make what costs when it is in the database. */
  openAccount(accountId: string): Promise<void>
  /** Sweeps claims as it will be done after the given time, by the shard; all work when absent. */
  sweepClaims(laterMilliseconds: number, shard?: Shard): Promise<ClaimSweep>
  close(): Promise<void>
}

/** Of a process that may write only so often. It dies at its last write: nothing of it happens from then on, not even
 *  learning what came of the write. */
export interface Life {
  readonly writesMaximum: number
  readonly onDeath: () => void
  /** Asked at each write, instead of which the process dies when it is over; what it did to a store has happened. */
  readonly isOver?: () => Promise<boolean>
}

export interface ControllersStart {
  /** Whether every address counts as confirmed. */
  readonly areAddressesConfirmed?: boolean
  readonly hasSealing?: boolean
  /** Receivers of webhooks that count as part of the Internet. Events are sent where this is given. */
  readonly trust?: TestTrust
  readonly controlPlanes?: ControlPlanesOffer
  readonly hostClusters?: HostClusters
  readonly organisationPlatform?: OrganisationPlatform
  /** Instead of the simulated ones. What a process does to a store is a write of it when `strike` is awaited behind
   *  that: it rejects when the process dies there. */
  readonly objectStores?: (strike: () => Promise<void>) => readonly ObjectStorage[]
}

export interface AgentStart {
  /** Of the host. */
  readonly bootId?: string
  /** Shared storage that the host has mounted; all when absent. */
  readonly mounted?: readonly string[]
  /** Templates of the host; all are built when absent. */
  readonly templates?: TemplateStore
}

export interface Mortals {
  /** How many have died until now. */
  deaths(): number
  stop(): Promise<void>
}

export const NODE = 'n1'
export const ZONE = 'zone-1'
export const SEALING_KEYS = [{ id: 'test', key: Buffer.alloc(32, 1) }]

const POOL = 'pool-1'

/** `zoneOf` says which hosts are in another zone than the first; `clock` is another one where real programs take their
 *  time. */
export async function openCloud(
  db: Database,
  log: Logger = silentLog,
  nodes: readonly string[] = [NODE],
  zoneOf: Readonly<Record<string, string>> = {},
  clock: Clock = fastClock,
): Promise<Cloud> {
  const random = systemRandom
  const core = await openCore({ clock, random, log: silentLog, storage: memoryStorage() })
  const storeOf = (fieldManager: string, user = ADMIN) =>
    openClient({
      transport: (request) => core.handle(request, user),
      fieldManager,
      clock,
      random,
      requestTimeoutMilliseconds: 60_000,
    })
  const kubectl = storeOf('kubectl-edit')
  await installCrds(kubectl, crds(), clock)
  // As whoever leads makes it: operations on what is in no namespace are kept there.
  await kubectl.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE }, spec: undefined })
  await kubectl.create(Region, { metadata: { name: 'eu-1' }, spec: { displayName: 'Europe', country: 'DE' } })
  for (const name of new Set([ZONE, ...Object.values(zoneOf)]))
    await kubectl.create(Zone, {
      metadata: { name },
      spec: { displayName: name, region: 'eu-1', isClosed: false, capabilities: [] },
    })
  await kubectl.create(Plan, {
    metadata: { name: 'tiny' },
    spec: TINY_PLAN,
  })
  await kubectl.create(Template, {
    metadata: { name: 'tiny-linux' },
    spec: TINY_LINUX,
  })
  for (const name of nodes)
    await kubectl.create(Node, {
      metadata: { name },
      spec: {
        zone: zoneOf[name] ?? ZONE,
        rack: 'r1',
        roles: ['compute'],
        isCordoned: false,
        cpuOvercommit: 4,
        reservedMemoryMebibytes: 0,
      },
    })

  const network = newSimulatedNetwork()
  const ovn = openSimulatedOvn()
  const objectStorage = openSimulatedObjectStorage([ZONE])
  const gatewayZones: string[] = []
  const gateway = openSimulatedObjectStorage(gatewayZones, 'rgw')
  const controlPlanes = openSimulatedControlPlanes(['eu-1'])
  const storage = nodes.length === 1 ? newSimulatedStorage() : newSimulatedStorage(POOL)
  const pools = [...storage.pools.keys()]
  const hosts = new Map(
    nodes.map((name) => [
      name,
      {
        machine: newSimulatedHost({ clock, random, network, name }),
        volumes: new Map<string, HeldVolume>(),
        ledger: ledgerInMemory(),
      },
    ]),
  )
  const hostOf = (name: string) => {
    const host = hosts.get(name)
    if (host === undefined) throw new Error(`there is no host ${name}`)
    return host
  }
  const { machine: host, volumes } = hostOf(nodes[0] ?? NODE)
  const blocked = new Set<string>()
  const stores = new Map<string, SimulatedStore>([ZONE, ...Object.values(zoneOf)].map((zone) => [zone, new Map()]))
  const backupsIn = (zone: string): SimulatedStore => {
    const found = stores.get(zone)
    if (found === undefined) throw new Error(`there is no zone ${zone}`)
    return found
  }
  const filled = new Map<string, string>()
  const openStorageAccess: OpenStorageAccess = async ({ addresses }) => ({
    take: async () => addresses.forEach((address) => blocked.add(address)),
    giveBack: async () => addresses.forEach((address) => blocked.delete(address)),
  })
  const stops = new Set<() => Promise<void>>()
  const running = (run: (signal: AbortSignal) => Promise<void>): (() => Promise<void>) => {
    const ending = new AbortController()
    const ended = run(ending.signal)
    const stop = async () => {
      stops.delete(stop)
      ending.abort()
      await ended
    }
    stops.add(stop)
    return stop
  }

  const cloud: Cloud = {
    kubectl,
    ovn,
    objectStorage,
    gateway,
    gatewayZones,
    controlPlanes,
    host,
    volumes,
    pool: storage.pools.get(POOL) ?? new Map<string, HeldVolume>(),
    blocked,
    backups: backupsIn(ZONE),
    backupsIn,
    filled,
    hostOf: (name) => hostOf(name).machine,
    startMortals(writesMaximum, deathsMaximum = Number.POSITIVE_INFINITY, options = {}) {
      let deaths = 0
      let isOver = false
      let stop = async () => {}
      const begin = () => {
        stop = cloud.startControllers(
          deaths === deathsMaximum
            ? undefined
            : {
                writesMaximum,
                onDeath: () => {
                  deaths++
                  if (!isOver) setImmediate(begin)
                },
              },
          options,
        )
      }
      begin()
      return {
        deaths: () => deaths,
        async stop() {
          isOver = true
          await stop()
        },
      }
    },
    startControllers(
      life,
      {
        hasSealing = true,
        controlPlanes: hosts = controlPlanes.offer,
        objectStores = () => [objectStorage, gateway],
        hostClusters,
        organisationPlatform,
        areAddressesConfirmed = false,
        trust,
      } = {},
    ) {
      const mortal =
        life === undefined
          ? undefined
          : mortality({
              ...life,
              onDeath() {
                died.abort()
                life.onDeath()
              },
            })
      const died = new AbortController()
      const store =
        mortal === undefined ? storeOf('svccloud-controllers') : mortal.store(storeOf('svccloud-controllers'))
      const registry = openRegistry({ isProcessWide: false })
      const parts: Parts = {
        store,
        caches: openCaches({ store, clock, random, log, registry }),
        db: mortal === undefined ? db : mortal.database(db),
        sweepRate: openSweepRate(clock),
        clock: mortal === undefined ? clock : mortal.clock(clock),
        random,
        log,
        areAddressesConfirmed,
      }
      const controllers = openControllers({
        ...parts,
        ovn,
        hostClusters,
        organisationPlatform,
        objectStorage: { stores: objectStores(mortal?.strike ?? (async () => {})), obstacle: '' },
        controlPlanes: hosts,
        metrics: openControllerMetrics(registry),
        openStorageAccess,
        sealing: createSealing(hasSealing ? SEALING_KEYS : [], random),
      })
      return running(async (signal) => {
        const ending = AbortSignal.any([signal, died.signal])
        parts.caches.start(ending)
        const sending =
          trust === undefined ? {} : { trust, sealing: createSealing(hasSealing ? SEALING_KEYS : [], random) }
        const options = { ...parts, ...sending, objectStorage: { stores: [], obstacle: '' } }
        const ended = runControllers(controllers, options, ending)
        // The turns of a dead process never end.
        await Promise.race([
          ended,
          new Promise<void>((resolve) => died.signal.addEventListener('abort', () => resolve(), { once: true })),
        ])
      })
    },
    startAgent(
      node = nodes[0] ?? NODE,
      { bootId = 'boot-1', mounted = pools, templates = simulatedTemplates() }: AgentStart = {},
    ) {
      const of = hostOf(node)
      const agent = openAgent({
        nodeName: node,
        store: storeOf('svccloud-agent', { name: nodeUser(node).user, groups: nodeUser(node).groups }),
        hypervisor: of.machine.attach(),
        volumes: simulatedVolumes(of.volumes, { storage, mounted, host: node }),
        images: templates,
        customImages: simulatedImages(),
        ledger: of.ledger,
        openBackups: () =>
          simulatedBackups(backupsIn(zoneOf[node] ?? ZONE), {
            sizeOf: async (volume) => of.volumes.get(volume)?.sizeGibibytes,
            clock,
            filled,
            sourceOf: (zone) => stores.get(zone),
          }),
        clock,
        random,
        log,
        registry: openRegistry({ isProcessWide: false }),
        report: async () => ({
          agentVersion: 'test',
          bootId,
          logicalCpus: 2,
          memoryMebibytes: 4_096,
          storageGibibytes: 100,
          hypervisor: 'simulated',
          features: [
            BACKUPS_FEATURE,
            OBJECT_BACKUPS_FEATURE,
            ...[...stores.keys()].filter((zone) => zone !== (zoneOf[node] ?? ZONE)).map(backupSourceFeature),
          ],
          pools: [...mounted],
        }),
      })
      return running((signal) => agent.run(signal))
    },
    async openAccount(accountId) {
      if (await accountExists(db, accountId)) await giveStanding(db, accountId)
      // Controllers that run already may have made it. They make it once for each account: recorded first, a namespace
      // that a test deletes stays deleted.
      await noteAccountNamespace(db, accountId, clock.now())
      await makeNamespace(kubectl, accountNamespaceOf(accountId))
    },
    async sweepClaims(laterMilliseconds, shard) {
      const ending = new AbortController()
      const caches = openCaches({
        store: kubectl,
        clock,
        random,
        log,
        registry: openRegistry({ isProcessWide: false }),
      })
      for (const { type } of CLAIMANT_KINDS) caches.of(type)
      for (const type of [Instance, Volume, Image, NodeReport, Zone]) caches.of<unknown, unknown>(type)
      caches.start(ending.signal)
      await caches.ready()
      const later = { ...clock, now: () => new Date(clock.now().getTime() + laterMilliseconds) }
      const swept = await sweepClaims({
        store: kubectl,
        caches,
        db,
        clock: later,
        random,
        log,
        ovn,
        sweepRate: openSweepRate(clock),
        ...defined({ shard }),
      })
      ending.abort()
      return swept
    },
    async close() {
      await Promise.all([...stops].map((stop) => stop()))
      await core.close()
    },
  }
  return cloud
}

/** A process that dies with its n-th write: the write happens, and nobody learns of it. */
function mortality({ writesMaximum, onDeath, isOver = async () => false }: Life) {
  let writes = 0
  let isDead = false
  const die = (): void => {
    if (isDead) return
    isDead = true
    writes = writesMaximum
    onDeath()
  }
  const never = <T>() => new Promise<T>(() => {})
  const write = async <T>(work: () => Promise<T>): Promise<T> => {
    if (++writes > writesMaximum) return never()
    if (await isOver()) die()
    if (isDead) return never()
    if (writes < writesMaximum) return work()
    await work().catch(() => {})
    die()
    return never()
  }
  return {
    strike: async (): Promise<void> => {
      if (++writes < writesMaximum && !(await isOver()) && !isDead) return
      die()
      throw new Error('the process has died')
    },
    /** What is dead does nothing by the clock. */
    clock: (clock: Clock): Clock => ({
      ...clock,
      sleep: (milliseconds, signal) => (isDead ? never() : clock.sleep(milliseconds, signal)),
    }),
    store: (store: Store): Store => ({
      ...store,
      get: (type, key) => (writes >= writesMaximum ? never() : store.get(type, key)),
      // an Event is written beside the work, and no life is measured by it
      create: (type, draft) =>
        type.kind === Event.kind ? store.create(type, draft) : write(() => store.create(type, draft)),
      replace: (type, object) => write(() => store.replace(type, object)),
      replaceStatus: (type, object) => write(() => store.replaceStatus(type, object)),
      patch: (type, key, patch, subresource) => write(() => store.patch(type, key, patch, subresource)),
      apply: (type, draft, subresource) => write(() => store.apply(type, draft, subresource)),
      delete: (type, key, options) => write(() => store.delete(type, key, options)),
    }),
    database: (db: Database): Database =>
      new Proxy(db, {
        get(target, name) {
          const member: unknown = Reflect.get(target, name, target)
          if (name === 'transaction')
            return () => ({
              execute: <T>(work: Parameters<ReturnType<Database['transaction']>['execute']>[0]) =>
                write(() => target.transaction().execute(work) as Promise<T>),
            })
          return typeof member === 'function' ? member.bind(target) : member
        },
      }),
  }
}
