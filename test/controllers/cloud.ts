/** A cloud in one process for tests of the controllers: an embedded Kubernetes API, a real PostgreSQL, hosts with
 *  simulated guests
 *  and their real agents, that share their storage where there is more than one. Time runs ten times as fast, so that
 *  guests that take a second to boot do not. */
import { openAgent } from '../../agents/node/loop.ts'
import { ledgerInMemory } from '../../agents/node/ledger.ts'
import { newSimulatedNetwork } from '../../agents/node/drivers/hypervisor/simulated-network.ts'
import { newSimulatedHost, type SimulatedHost } from '../../agents/node/drivers/hypervisor/simulated.ts'
import { newSimulatedStorage, simulatedVolumes } from '../../agents/node/drivers/storage/simulated.ts'
import type { HeldVolume } from '../../agents/node/drivers/storage/volume-store.ts'
import { simulatedTemplates } from '../../agents/node/images/simulated.ts'
import { sweepClaims } from '../../controllers/claim/index.ts'
import type { OpenStorageAccess } from '../../controllers/fencing/effects.ts'
import { openControllers, runControllers } from '../../controllers/index.ts'
import type { Parts } from '../../controllers/parts.ts'
import type { Database } from '../../db/open.ts'
import { ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import { openCaches } from '../../kit/kube/caches.ts'
import { openClient } from '../../kit/kube/client.ts'
import { installCrds, readCrds } from '../../kit/kube/crd.ts'
import { Namespace } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import { openControllerMetrics } from '../../kit/reconcile/metrics.ts'
import { type Clock, systemClock } from '../../kit/sys/clock.ts'
import { type Logger, silentLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Instance } from '../../resources/instance/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Node } from '../../resources/node/index.ts'
import { Plan, Region, Template, Zone } from '../../resources/catalog/index.ts'

const SPEED = 10
const startedAt = systemClock.now().getTime()
export const fastClock: Clock = {
  now: () => new Date(startedAt + (systemClock.now().getTime() - startedAt) * SPEED),
  monotonicMilliseconds: () => systemClock.monotonicMilliseconds() * SPEED,
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds / SPEED, signal),
  after: (milliseconds, work) => systemClock.after(milliseconds / SPEED, work),
}

export interface Cloud {
  /** Kubernetes as kubectl uses it. */
  readonly kubectl: Store
  /** The first host. */
  readonly host: SimulatedHost
  readonly volumes: Map<string, HeldVolume>
  /** What lies on shared storage. */
  readonly pool: ReadonlyMap<string, HeldVolume>
  /** Addresses that shared storage serves no more. */
  readonly blocked: ReadonlySet<string>
  hostOf(node: string): SimulatedHost
  /** Starts the controllers; the answer stops them. A process that may write only so often dies at its last write:
   *  nothing of it happens
   *  any more, not even learning what came of the write. `onDeath` is called then. */
  startControllers(life?: { readonly writesMaximum: number; readonly onDeath: () => void }): () => Promise<void>
  /** Starts controllers that die after so many writes, each followed by the next as a supervisor does, until so many
   *  have died: the one after them lives. */
  startMortals(writesMaximum: number, deathsMaximum?: number): Mortals
  startAgent(node?: string, bootId?: string): () => Promise<void>
  openAccount(accountId: string): Promise<void>
  /** Releases claims of lost servers as it will be done after the given time. */
  sweepClaims(laterMilliseconds: number): Promise<number>
  close(): Promise<void>
}

export interface Mortals {
  /** How many have died until now. */
  deaths(): number
  stop(): Promise<void>
}

export const NODE = 'n1'
export const ZONE = 'zone-1'

const POOL = 'pool-1'

export async function openCloud(
  db: Database,
  log: Logger = silentLog,
  nodes: readonly string[] = [NODE],
): Promise<Cloud> {
  const clock = fastClock
  const random = systemRandom
  const core = await openCore({ clock, random, log: silentLog, storage: memoryStorage() })
  const storeOf = (fieldManager: string) =>
    openClient({
      transport: (request) => core.handle(request, ADMIN),
      fieldManager,
      clock,
      random,
      requestTimeoutMilliseconds: 60_000,
    })
  const kubectl = storeOf('kubectl-edit')
  await installCrds(kubectl, await readCrds('crds'), clock)
  await kubectl.create(Region, { metadata: { name: 'eu-1' }, spec: { displayName: 'Europe', country: 'DE' } })
  await kubectl.create(Zone, {
    metadata: { name: ZONE },
    spec: { displayName: 'Zone 1', region: 'eu-1', isClosed: false, capabilities: [] },
  })
  await kubectl.create(Plan, {
    metadata: { name: 'tiny' },
    spec: { family: 'starter', cores: 1, memoryMebibytes: 192, storageGibibytes: 1, priceMonthlyCents: 100 },
  })
  await kubectl.create(Template, {
    metadata: { name: 'tiny-linux' },
    spec: {
      title: 'Tiny',
      osFamily: 'linux',
      osVersion: '1',
      architecture: 'x86_64',
      defaultUser: 'root',
      minStorageGibibytes: 1,
      minMemoryMebibytes: 128,
      zones: [],
      image: { built: 'tiny-linux' },
      isHidden: false,
    },
  })
  for (const name of nodes)
    await kubectl.create(Node, {
      metadata: { name },
      spec: {
        zone: ZONE,
        rack: 'r1',
        roles: ['compute'],
        isCordoned: false,
        cpuOvercommit: 4,
        reservedMemoryMebibytes: 0,
      },
    })

  const network = newSimulatedNetwork()
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
    host,
    volumes,
    pool: storage.pools.get(POOL) ?? new Map<string, HeldVolume>(),
    blocked,
    hostOf: (name) => hostOf(name).machine,
    startMortals(writesMaximum, deathsMaximum = Number.POSITIVE_INFINITY) {
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
    startControllers(life) {
      const mortal =
        life === undefined
          ? undefined
          : mortality(life.writesMaximum, () => {
              died.abort()
              life.onDeath()
            })
      const died = new AbortController()
      const store =
        mortal === undefined ? storeOf('svccloud-controllers') : mortal.store(storeOf('svccloud-controllers'))
      const registry = openRegistry({ isProcessWide: false })
      const parts: Parts = {
        store,
        caches: openCaches({ store, clock, random, log, registry }),
        db: mortal === undefined ? db : mortal.database(db),
        clock,
        random,
        log,
      }
      const controllers = openControllers({ ...parts, metrics: openControllerMetrics(registry), openStorageAccess })
      return running(async (signal) => {
        const ending = AbortSignal.any([signal, died.signal])
        parts.caches.start(ending)
        const ended = runControllers(controllers, parts, ending)
        // The turns of a dead process never end.
        await Promise.race([
          ended,
          new Promise<void>((resolve) => died.signal.addEventListener('abort', () => resolve(), { once: true })),
        ])
      })
    },
    startAgent(node = nodes[0] ?? NODE, bootId = 'boot-1') {
      const of = hostOf(node)
      const agent = openAgent({
        nodeName: node,
        store: storeOf('svccloud-agent'),
        hypervisor: of.machine.attach(),
        volumes: simulatedVolumes(of.volumes, { storage, mounted: pools, host: node }),
        images: simulatedTemplates(),
        ledger: of.ledger,
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
          features: [],
          pools,
        }),
      })
      return running((signal) => agent.run(signal))
    },
    async openAccount(accountId) {
      await kubectl.create(Namespace, { metadata: { name: accountNamespace(accountId) }, spec: undefined })
    },
    async sweepClaims(laterMilliseconds) {
      const ending = new AbortController()
      const caches = openCaches({
        store: kubectl,
        clock,
        random,
        log,
        registry: openRegistry({ isProcessWide: false }),
      })
      caches.of(Server)
      caches.of(Instance)
      caches.start(ending.signal)
      await caches.ready()
      const later = { ...clock, now: () => new Date(clock.now().getTime() + laterMilliseconds) }
      const swept = await sweepClaims({ store: kubectl, caches, db, clock: later, random, log })
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
function mortality(writesMaximum: number, die: () => void) {
  let writes = 0
  const never = <T>() => new Promise<T>(() => {})
  const write = async <T>(work: () => Promise<T>): Promise<T> => {
    if (++writes > writesMaximum) return never()
    if (writes < writesMaximum) return work()
    await work().catch(() => {})
    die()
    return never()
  }
  return {
    store: (store: Store): Store => ({
      ...store,
      get: (type, key) => (writes >= writesMaximum ? never() : store.get(type, key)),
      create: (type, draft) => write(() => store.create(type, draft)),
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
