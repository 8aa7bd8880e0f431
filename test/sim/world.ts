/** The world of one seed: a Kubernetes API in process, a PostgreSQL, hosts with simulated guests, and the product's own
 *  processes. */
import { sql } from 'kysely'
import { newSimulatedNetwork, type SimulatedNetwork } from '../../agents/node/drivers/hypervisor/simulated-network.ts'
import { ledgerInMemory } from '../../agents/node/ledger.ts'
import { newSimulatedStorage } from '../../agents/node/drivers/storage/simulated.ts'
import type { HeldVolume } from '../../agents/node/drivers/storage/volume-store.ts'
import type { Database } from '../../db/kit/open.ts'
import { NodeReport } from '../../resources/instance/index.ts'
import { type Admit } from '../../apiserver/kit/admission/admit.ts'
import { registerWebhook } from '../../apiserver/kit/admission/registration.ts'
import { AdmissionReview } from '../../apiserver/kit/admission/review.ts'
import { KINDS } from '../../apiserver/nouns.ts'
import type { CallWebhook } from '../../embedded/kubernetes/admission/webhooks.ts'
import { ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import type { User } from '../../embedded/kubernetes/core/object.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import type { Storage } from '../../embedded/kubernetes/storage/storage.ts'
import type { HttpService } from '../../kit/http/exchange.ts'
import { openClient } from '../../kit/kube/client.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Transport } from '../../kit/kube/transport.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { type BackupStores, newBackupStores } from './backup-stores.ts'
import { type ClusterHosts, newClusterHosts } from './cluster-hosts.ts'
import { createCatalog, MACHINES_NODE_CORES, NODE_CORES, NODES, POOLS } from './catalog.ts'
import { trackCryptography } from './cryptography.ts'
import { databaseOf, type DatabaseFaults, type SimulatedPostgres } from './database.ts'
import { newDatabaseMachines } from './database-machines.ts'
import { type Disks, newDisks } from './disks.ts'
import { drawFaults, type FaultPlan } from './faults.ts'
import { watchIsolation } from './isolation.ts'
import { type Guests, newGuests } from './guests.ts'
import { newNetworkDatabase, type NetworkDatabase } from './ovn.ts'
import { newObjectStores, type ObjectStores } from './object-stores.ts'
import type { DatabaseLedger, ObjectLedger } from './ledgers.ts'
import { type Host, newHost } from './hosts.ts'
import { newPower, type Power } from './nodes.ts'
import { type Defence, startProcesses } from './processes.ts'
import { type Orders, watchOrders } from './orders.ts'
import { type Uses, watchUses } from './uses.ts'
import { knownUses } from './known-uses.ts'
import { databaseCopies, type RestoreOptions, rewindable, runRestores } from './restores.ts'
import { Scheduler, SimulatedProcess } from './scheduler.ts'
import { newTraffic, type Traffic } from './traffic.ts'
import { watchWrites } from './writes.ts'

/** The longest that a simulated guest takes to start, and some more. */
const START_MILLISECONDS = 200

export interface World {
  readonly scheduler: Scheduler
  readonly faults: FaultPlan
  readonly clock: Clock
  /** Kubernetes without faults: what kubectl would see. */
  readonly admin: Store
  /** The same, of somebody whom the webhook is asked about in worlds with accidents. */
  readonly person: Store
  /** PostgreSQL without faults, in its turn: for the checks. */
  readonly db: Database
  readonly hosts: readonly Host[]
  readonly disks: Disks
  readonly network: SimulatedNetwork
  /** What OVN has of the zones; undefined in worlds without it. */
  readonly ovn: NetworkDatabase | undefined
  /** What hosts do, compared with their orders. */
  readonly orders: Orders
  /** Puts stores back. */
  readonly restore: RestoreOptions
  /** What guests use, and nobody else may. */
  readonly uses: Uses
  /** What was wrong with that at any instant, so far. */
  readonly isolationViolations: () => readonly string[]
  readonly power: Power
  readonly traffic: Traffic
  /** Undefined in worlds without managed machines. */
  readonly guests: Guests | undefined
  /** Undefined where zones have no place for backups. */
  readonly backups: BackupStores | undefined
  /** Undefined where zones keep no objects. */
  readonly stores: ObjectStores | undefined
  /** Undefined where nothing hosts clusters. */
  readonly clusters: ClusterHosts | undefined
  /** What people know of their objects, in worlds where they have some. */
  objects: ObjectLedger | undefined
  databases: DatabaseLedger | undefined
  /** Which work people do, and no other; undefined for all that all worlds have. */
  readonly only: OnlyWork | undefined
  /** What is on shared storage, by pool and volume. */
  readonly pools: ReadonlyMap<string, ReadonlyMap<string, HeldVolume>>
  readonly processes: readonly SimulatedProcess[]
  /** The API as a client reaches it now; undefined while it is down. */
  api(): HttpService | undefined
  /** As an operator does with a namespace that somebody deletes: it goes as an object only, and is made anew. */
  takeBack(namespace: string): Promise<void>
  /** Cuts the process off from Kubernetes for a while. */
  partition(processName: string, milliseconds: number): void
  reboot(host: Host): void
  /** What the product logged as errors that are bugs, newest last. */
  readonly bugs: readonly string[]
  /** Requests whose caller the API knew: those that are due an audit entry. */
  readonly signedIn: ReadonlySet<string>
  crashes: number
  /** No more faults; everything that is down comes back. */
  calm(): void
  /** Nothing goes on after what goes on now: the database is left to the next world. */
  end(): void
}

/** Work that has separate worlds. */
export const ONLY_WORK = ['objects', 'databases', 'kubernetes', 'balancers', 'backups'] as const
export type OnlyWork = (typeof ONLY_WORK)[number]

export interface WorldOptions {
  readonly trace?: ((line: string) => void) | undefined
  readonly without?: Defence | undefined
  /** Hosts lose their power, and are cut off with their guests. */
  readonly hasLosses?: boolean
  /** Zones have OVN, which delays, loses and repeats. */
  readonly hasNetwork?: boolean
  /** Kubernetes and PostgreSQL are put back to older states. */
  readonly hasRestores?: boolean
  /** Somebody deletes namespaces and takes finalizers, and Kubernetes asks the webhook. */
  readonly hasAccidents?: boolean
  /** People do nothing but this: use object storage, which moves, databases, clusters of Kubernetes, edges and load
   *  balancers, whose guests lose answers and lie, or disks with backups, for which zones have a place then. */
  readonly only?: OnlyWork | undefined
  /** Zones have shared storage. Drawn where it is not set. */
  readonly isPooled?: boolean
  /** What Kubernetes writes to. */
  readonly storage?: Storage
  /** Called with each step that counts for the fingerprint. */
  readonly onNote?: (at: Date, text: string) => void
}

export async function openWorld(
  seed: number,
  postgres: (scheduler: Scheduler) => SimulatedPostgres,
  {
    trace,
    without,
    hasLosses = false,
    hasNetwork = false,
    hasRestores = false,
    hasAccidents = false,
    only,
    isPooled,
    storage = memoryStorage(),
    onNote,
  }: WorldOptions = {},
): Promise<World> {
  const scheduler = new Scheduler(seed, onNote)
  const database = postgres(scheduler)
  const outside = new SimulatedProcess('world', scheduler)
  outside.begin()
  const worldClock = outside.clock()
  const isolation = watchIsolation(
    storage,
    () => ovn,
    (uid) =>
      hosts.flatMap(({ name, machine }) => (machine.running().some((guest) => guest.name === uid) ? [name] : [])),
  )
  const orders = watchOrders(hasNetwork ? isolation.storage : storage, () => shared.disks)
  const coresOfHost = hasMachines(only) ? MACHINES_NODE_CORES : NODE_CORES
  const uses = watchUses(orders.storage, coresOfHost)
  let isCalm = false
  const writes = watchWrites(uses.storage, {
    nowMilliseconds: () => scheduler.nowMilliseconds,
    isCalm: () => isCalm,
    onExcess: (violation) => scheduler.giveUp(violation),
  })
  const kubernetes = rewindable(writes)
  let admit: Admit | undefined
  const callWebhook: CallWebhook = ({ body, timeoutSeconds }) =>
    new Promise((resolve, reject) => {
      scheduler.after(timeoutSeconds * 1_000, () => reject(new Error('context deadline exceeded')))
      if (admit === undefined) return reject(new Error('connection refused'))
      const { request } = AdmissionReview.parse(JSON.parse(body))
      admit(request, { isAuthenticated: true }).then((answer) => resolve(JSON.stringify(answer)), reject)
    })
  const coreOn = (state: Storage) =>
    openCore({ clock: worldClock, random: scheduler.random, log: silentLog, storage: state, callWebhook })
  let core = await coreOn(kubernetes.storage)
  const serve: Transport = (request) => core.handle(request, ADMIN)
  const kubectl = (transport: Transport) =>
    openClient({ transport, fieldManager: 'kubectl', clock: worldClock, random: scheduler.random })
  /** The API server registers the webhook at each start, before anybody can make what it protects. */
  const setUp = async () => {
    await createCatalog(kubectl(serve), worldClock, hasLosses)
    if (!hasAccidents || without === 'asking') return
    await registerWebhook(kubectl(serve), 'svccloud', {
      url: 'https://webhook.example/admission',
      authority: '',
      platformUsers: [ADMIN.name],
      kinds: KINDS,
    })
  }
  await scheduler.track(setUp())
  const kubectlOf = (user: User) =>
    kubectl((request) => {
      if (request.method !== 'GET') scheduler.note(`kubectl ${request.method} ${request.path}`)
      return core.handle(request, user)
    })
  const admin = kubectlOf(ADMIN)

  const byName = new Map<string, SimulatedProcess>()
  const partitionedUntil = new Map<string, number>()
  const faults = drawFaults(scheduler, {
    mayCrash: (name) => byName.has(name),
    crash: (name) => byName.get(name)?.crash(),
  })
  const { pooledFromMilliseconds, ...shared } = openShared(scheduler, hasLosses, isPooled)
  const traffic = newTraffic(worldClock)
  const stores = only === 'objects' || only === 'databases' ? newObjectStores(scheduler) : undefined
  const clusters = only === 'kubernetes' ? newClusterHosts(scheduler, () => admin) : undefined
  const stopTracking = (stores ?? clusters) && trackCryptography(scheduler)
  const machines = stores && only === 'databases' ? newDatabaseMachines(scheduler, stores) : undefined
  const guests = hasMachines(only) ? newGuests(scheduler, machines) : undefined
  if (guests !== undefined) guests.clusters = clusters?.nodes
  const backups = only === 'backups' ? newBackupStores(scheduler) : undefined
  const [bugs, signedIn] = [[] as string[], new Set<string>()] // filled by the processes
  const hosts = newHosts(scheduler, worldClock, shared.network, without)
  const power = openPower(scheduler, hosts, byName, without)
  const ovn = hasNetwork
    ? newNetworkDatabase({
        scheduler,
        isCalm: () => isCalm,
        isLost: (host) => !power.isOn(host) || power.isHidden(host),
        onWrite: isolation.onWrite,
        without,
      })
    : undefined
  let api: HttpService | undefined
  const restore: RestoreOptions = {
    scheduler,
    kubernetes,
    database: databaseCopies(database),
    processes: () => [...byName.values()],
    async reopen(state, isEmpty) {
      core = await coreOn(state)
      if (isEmpty) await scheduler.track(setUp())
    },
    onBack: async () => uses.goBack(await knownUses(kubernetes.copy(), world.db)),
    loseLedger() {
      const host = scheduler.pick(hosts)
      if (host === undefined) return
      scheduler.note(`fault ledgerLost ${host.name}`)
      host.ledger = ledgerInMemory()
      byName.get(`agent-${host.name}`)?.crash()
    },
  }
  const world: World = {
    restore,
    ovn,
    orders,
    uses,
    isolationViolations: isolation.violations,
    power,
    traffic,
    guests,
    backups,
    stores,
    clusters,
    objects: undefined,
    databases: undefined,
    only,
    scheduler,
    faults,
    clock: worldClock,
    admin,
    person: kubectlOf({ name: 'grace@example.com', groups: ADMIN.groups }),
    db: databaseOf(outside, database, NO_FAULTS),
    hosts,
    get processes() {
      return [...byName.values()]
    },
    disks: shared.disks,
    network: shared.network,
    pools: shared.storage.pools,
    bugs,
    signedIn,
    crashes: 0,
    api: () => api,
    async takeBack(name) {
      scheduler.note(`kubectl takes back ${name}`)
      const body = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name }, spec: {} })
      const headers = { 'content-type': 'application/json' }
      await core.handle({ method: 'PUT', path: `/api/v1/namespaces/${name}/finalize`, headers, body }, ADMIN)
      await core.handle({ method: 'POST', path: '/api/v1/namespaces', headers, body }, ADMIN)
    },
    ...disturbances({
      scheduler,
      faults,
      power,
      hosts,
      backups,
      network: shared.network,
      partitionedUntil,
      onCalm() {
        isCalm = true
        stores?.calm()
        clusters?.calm()
        if (guests !== undefined) guests.isShaken = false
      },
    }),
    end() {
      for (const process of [outside, ...world.processes]) process.crash()
      stopTracking?.()
    },
  }
  startProcesses(
    {
      ...world,
      orders,
      ...shared,
      database,
      serve,
      without,
      trace,
      processes: byName,
      partitionedUntil,
      bugs,
      signedIn,
      onCrash: () => void (world.crashes += 1),
      onServing: (serving) => void (api = serving),
      onAdmitting: (admitting) => void (admit = admitting),
    },
    seed,
  )
  if (hasRestores) scheduler.after(RESTORES_AFTER_MILLISECONDS, () => runRestores(restore, () => isCalm))
  const undermine = UNDERMINED[without ?? '']
  if (undermine !== undefined)
    void scheduler.repeat(
      { least: FORGETTING_MILLISECONDS, most: FORGETTING_MILLISECONDS },
      () => false,
      () => undermine(world),
    )
  if (pooledFromMilliseconds > 0 && pooledFromMilliseconds < Number.POSITIVE_INFINITY)
    scheduler.after(pooledFromMilliseconds, () => {
      scheduler.note('zones gain shared storage')
      for (const { name } of hosts) byName.get(`agent-${name}`)?.crash()
    })
  return world
}

/** What takes a defence of the stores away, time and again. */
const UNDERMINED: Readonly<Record<string, (world: Pick<World, 'db' | 'admin'>) => Promise<void>>> = {
  async kept_uses({ db }) {
    await db.deleteFrom('host_use').execute()
    await db
      .updateTable('node_capacity')
      .set({ cores_forgotten: 0, memory_mebibytes_forgotten: 0, storage_gibibytes_forgotten: 0 })
      .execute()
  },
  /** An order for each server that has room: whichever is missing was deleted then. And no host reports a guest that no
   *  object names, for which claims wait even then. */
  async order({ db, admin }) {
    for (const { metadata, status } of (await admin.list(NodeReport)).items)
      if ((status?.unnamed ?? []).length > 0)
        await admin
          .patch(
            NodeReport,
            { namespace: metadata.namespace ?? '', name: metadata.name },
            { status: { unnamed: [] } },
            'status',
          )
          .catch(() => {})
    await sql`insert into removal (id, kind, namespace, name, uid, reason, ordered_at)
      select gen_random_uuid(), 'Server', 'acct-' || account_id, server_id, '', 'operator', now() from placement
      on conflict do nothing`.execute(db)
  },
}

/** Managed machines are there. */
const hasMachines = (only: OnlyWork | undefined): boolean =>
  only !== undefined && only !== 'objects' && only !== 'backups'

/** Accounts are there by then. */
const RESTORES_AFTER_MILLISECONDS = 15_000

const FORGETTING_MILLISECONDS = 100

const POOLED_LATER = { least: 5_000, most: 25_000 }

/** What hosts have in common. In every other world on average zones have shared storage; in most of those that lose
 *  hosts, because servers leave lost ones over it. In some of them it comes later. */
function openShared(scheduler: Scheduler, hasLosses: boolean, isPooled: boolean | undefined) {
  const { random } = scheduler
  const isDrawn = random.fraction() < (hasLosses ? 0.85 : 0.5)
  const isLater = random.fraction() < 0.3 && isPooled === undefined
  const later = POOLED_LATER.least + random.fraction() * (POOLED_LATER.most - POOLED_LATER.least)
  const pooledFromMilliseconds = (isPooled ?? isDrawn) ? (isLater ? later : 0) : Number.POSITIVE_INFINITY
  return {
    network: newSimulatedNetwork(),
    storage: newSimulatedStorage(...Object.values(POOLS)),
    disks: newDisks(),
    pooledFromMilliseconds,
    hasPools: () => scheduler.nowMilliseconds >= pooledFromMilliseconds,
  }
}

const newHosts = (
  scheduler: Scheduler,
  clock: Clock,
  network: SimulatedNetwork,
  without: Defence | undefined,
): readonly Host[] =>
  NODES.map(({ name }) =>
    newHost(name, scheduler, {
      clock,
      random: scheduler.random,
      network,
      isSplitBrainAllowed: without === 'either_or',
    }),
  )

/** The power of the hosts. */
function openPower(
  scheduler: Scheduler,
  hosts: readonly Host[],
  processes: ReadonlyMap<string, SimulatedProcess>,
  without: Defence | undefined,
): Power {
  const hostOf = (name: string) => hosts.find((host) => host.name === name)
  return newPower({
    scheduler,
    hosts: () => hosts,
    isLying: without === 'power',
    onCut(name) {
      processes.get(`agent-${name}`)?.crash()
      // What was about to start has no power either.
      for (const milliseconds of [0, START_MILLISECONDS])
        scheduler.after(milliseconds, () => hostOf(name)?.machine.reboot())
    },
    onRestore(name) {
      const host = hostOf(name)
      if (host !== undefined) host.bootId = newUuid(scheduler.random)
    },
  })
}

interface DisturbanceOptions extends Pick<World, 'scheduler' | 'faults' | 'power' | 'hosts' | 'network' | 'backups'> {
  readonly partitionedUntil: Map<string, number>
  readonly onCalm: () => void
}

/** What disturbs the world from outside, and what ends that. */
function disturbances(options: DisturbanceOptions): Pick<World, 'partition' | 'reboot' | 'calm'> {
  const { scheduler, faults, power, hosts, network, backups, partitionedUntil, onCalm } = options
  return {
    partition(name, milliseconds) {
      scheduler.note(`partition ${name}`)
      partitionedUntil.set(name, scheduler.nowMilliseconds + milliseconds)
    },
    reboot(host) {
      if (!power.isOn(host.name)) return
      scheduler.note(`reboot ${host.name}`)
      host.bootId = newUuid(scheduler.random)
      host.machine.reboot()
    },
    calm() {
      onCalm()
      faults.calm()
      power.calm()
      if (backups !== undefined) backups.failure = 0
      for (const { name, machine } of hosts) {
        network.mend(name)
        for (const guest of machine.running()) machine.keepGuestBusy(guest.name, 0)
        machine.failNextStart(undefined)
      }
      partitionedUntil.clear()
    },
  }
}

const NO_FAULTS: DatabaseFaults = { breaksBefore: () => false, losesCommit: () => false, crashesAfter: () => false }
