/** The product's own processes in a simulated world: API server, two controllers, one agent for each host. Each dies at
 *  any effect and comes back by itself. */
import { type Admit, openAdmission } from '../../apiserver/kit/admission/admit.ts'
import { KINDS } from '../../apiserver/nouns.ts'
import { ADMIN } from '../../embedded/kubernetes/core/core.ts'
import { type Agent, openAgent } from '../../agents/node/loop.ts'
import { type SimulatedStorage, simulatedVolumes } from '../../agents/node/drivers/storage/simulated.ts'
import type { Hypervisor } from '../../agents/node/drivers/hypervisor/hypervisor.ts'
import type { VolumeStore } from '../../agents/node/drivers/storage/volume-store.ts'
import { simulatedImages } from '../../agents/node/images/image-store.ts'
import { simulatedTemplates } from '../../agents/node/images/simulated.ts'
import type { ImageState, TemplateStore } from '../../agents/node/images/template-store.ts'
import { createApp } from '../../apiserver/app.ts'
import { look, runLooks } from '../../apiserver/look.ts'
import { openSweepRate } from '../../controllers/kit/sweep-rate.ts'
import { openControllers, runControllers } from '../../controllers/index.ts'
import { parseShard, type Shard, WHOLE } from '../../controllers/kit/shard.ts'
import type { UsageSource } from '../../controllers/nouns/usage/collector.ts'
import { NETWORK_FEATURES } from '../../domain/network/guest-network.ts'
import { DATABASE_TEMPLATE, KUBERNETES_NODE_TEMPLATE } from '../../domain/managed-machine/rules.ts'
import { Unavailable } from '../../domain/problem.ts'
import type { HttpService } from '../../kit/http/exchange.ts'
import { openCaches } from '../../kit/kube/caches.ts'
import { openClient } from '../../kit/kube/client.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Transport } from '../../kit/kube/transport.ts'
import { LEADER_REQUEST_TIMEOUT_MILLISECONDS, runElected } from '../../kit/reconcile/lease.ts'
import { openControllerMetrics } from '../../kit/reconcile/metrics.ts'
import { describeError, type Logger } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { createSealing } from '../../kit/sys/sealing.ts'
import { Instance, nodeNamespace, Volume } from '../../resources/instance/index.ts'
import { BACKUPS_FEATURE, backupSourceFeature } from '../../resources/backup-job/index.ts'
import { documented } from '../contract/document-check.ts'
import { type BackupStores, shakenBackups } from './backup-stores.ts'
import { MACHINES_NODE_CORES, NODE_CORES, POOLS, ZONES, zoneOf } from './catalog.ts'
import type { ClusterHosts } from './cluster-hosts.ts'
import { lackingRight } from './rights.ts'
import { databaseOf, type DatabaseFaults, type SimulatedPostgres } from './database.ts'
import type { Disks } from './disks.ts'
import type { FaultPlan } from './faults.ts'
import type { Ledger } from '../../agents/node/ledger.ts'
import type { Host } from './hosts.ts'
import { NETWORK_DEFENCES, type NetworkDatabase } from './ovn.ts'
import type { Orders } from './orders.ts'
import { offerTo } from './object-services.ts'
import type { ObjectStores } from './object-stores.ts'
import type { Guests } from './guests.ts'
import { endpointOf, type Power } from './nodes.ts'
import { type Scheduler, SimulatedProcess } from './scheduler.ts'
import type { Traffic } from './traffic.ts'
import { simulatedTransport } from './transport.ts'

const USAGE_ANSWER_MILLISECONDS = 5_000
const POWER_CHECK_MILLISECONDS = 500
const RESTART_MILLISECONDS = { least: 500, most: 5_000 }
const BEGIN_MILLISECONDS_MAXIMUM = 500

/** What keeps guests whole while they move, and when stores go back. A world without one of them must break an
 *  invariant. */
export const DEFENCES = [
  /** A guest that was handed over does not go on where it was. */
  'either_or',
  /** What is on shared storage stays when a node that has lost the server releases it. */
  'retention',
  /** What management controllers say of power is true. */
  'power',
  /** Hosts leave what no object names. */
  'unnamed',
  /** Hosts make no disk a second time. */
  'made_once',
  /** Hosts keep what was in use where the platform removes it as an unused target of a move. */
  'kept_current',
  /** What a forgotten server uses is kept from others. */
  'kept_uses',
  /** What is missing was not deleted: its claims wait for an order, and for the end of a guest that hosts report. */
  'order',
  /** Kubernetes asks about what it deletes by itself, and about what people do. */
  'asking',
  ...NETWORK_DEFENCES,
] as const
export type Defence = (typeof DEFENCES)[number]

/** What the processes run in. */
export interface Surroundings {
  readonly scheduler: Scheduler
  readonly database: SimulatedPostgres
  /** The Kubernetes API without faults. */
  readonly serve: Transport
  readonly faults: FaultPlan
  readonly power: Power
  readonly hosts: readonly Host[]
  readonly disks: Disks
  readonly orders: Orders
  /** Undefined in worlds without OVN. */
  readonly ovn: NetworkDatabase | undefined
  readonly storage: SimulatedStorage
  /** Whether zones have shared storage by now. */
  hasPools(): boolean
  readonly traffic: Traffic
  readonly backups: BackupStores | undefined
  /** Undefined where zones keep no objects. */
  readonly stores: ObjectStores | undefined
  /** Undefined where nothing hosts clusters. */
  readonly clusters: ClusterHosts | undefined
  /** Undefined in worlds without managed machines. */
  readonly guests: Guests | undefined
  readonly without: Defence | undefined
  readonly trace: ((line: string) => void) | undefined
  /** By name; filled here. */
  readonly processes: Map<string, SimulatedProcess>
  /** Until when a process is cut off from Kubernetes, by name. */
  readonly partitionedUntil: ReadonlyMap<string, number>
  /** What the product logged as errors that are bugs; filled here. */
  readonly bugs: string[]
  /** Requests whose caller the API knew; filled here. */
  readonly signedIn: Set<string>
  readonly onCrash: () => void
  /** The API as clients reach it from now on, if at all. */
  readonly onServing: (api: HttpService | undefined) => void
  /** The webhook as Kubernetes reaches it from now on, if at all. */
  readonly onAdmitting: (admit: Admit | undefined) => void
}

/** Starts all of them; the shards of the controllers depend on the seed. */
export function startProcesses(world: Surroundings, seed: number): void {
  supervise(world, 'apiserver', (process) => startApiServer(world, process))
  // Every other seed parts the work by zones; otherwise one leads and one waits.
  const shards = seed % 2 === 0 ? [parseShard('zones:zone-a'), parseShard('others:zone-a')] : [WHOLE, WHOLE]
  const agents = new Map<string, Agent>()
  for (const [index, shard] of shards.entries())
    supervise(world, `controllers-${index + 1}`, (process) => startControllers(world, process, shard, agents))
  for (const host of world.hosts)
    supervise(world, `agent-${host.name}`, (process) => startAgent(world, process, host, agents))
}

/** Runs `boot` in a process, again after each death. */
function supervise(
  { scheduler, processes, power, onCrash }: Surroundings,
  name: string,
  boot: (process: SimulatedProcess) => void,
): void {
  const process = new SimulatedProcess(name, scheduler)
  processes.set(name, process)
  const start = () => {
    process.begin()
    scheduler.note(`boot ${name}`)
    process.onCrash(() => {
      onCrash()
      scheduler.after(
        RESTART_MILLISECONDS.least +
          scheduler.random.fraction() * (RESTART_MILLISECONDS.most - RESTART_MILLISECONDS.least),
        startWithPower,
      )
    })
    boot(process)
  }
  const startWithPower = () =>
    power.isOn(name.replace(/^agent-/, '')) ? start() : void scheduler.after(POWER_CHECK_MILLISECONDS, startWithPower)
  scheduler.after(scheduler.random.fraction() * BEGIN_MILLISECONDS_MAXIMUM, startWithPower)
}

/** Ends the process with its main, and keeps the error that ended it. */
function followMain({ bugs }: Surroundings, process: SimulatedProcess, main: Promise<unknown>): void {
  const epoch = process.epoch
  main.then(
    () => process.isAlive(epoch) && process.crash(), // a main that ends ends its process
    (error: unknown) => {
      if (!process.isAlive(epoch)) return
      bugs.push(`${process.name} ended: ${JSON.stringify(describeError(error))}`)
      process.crash()
    },
  )
}

export const SEALING_KEYS = [{ id: 'sim', key: Buffer.alloc(32, 1) }]

const never = (): AbortSignal => new AbortController().signal

const isCutOff = ({ scheduler, partitionedUntil, power }: Surroundings, name: string): boolean =>
  (partitionedUntil.get(name) ?? 0) > scheduler.nowMilliseconds || power.isHidden(name.replace(/^agent-/, ''))

const transportOf = (world: Surroundings, process: SimulatedProcess): Transport =>
  simulatedTransport({
    process,
    scheduler: world.scheduler,
    faults: world.faults,
    serve: (request) => {
      const lacking = lackingRight(process.name, request)
      if (lacking !== undefined) world.bugs.push(lacking)
      return world.serve(request)
    },
    isPartitioned: () => isCutOff(world, process.name),
  })

function startApiServer(world: Surroundings, process: SimulatedProcess): void {
  const { scheduler, database, faults, bugs, onServing } = world
  const clock = process.clock()
  const [random, log] = [scheduler.random, recorderOf(world, process.name)]
  const store = openClient({
    transport: transportOf(world, process),
    fieldManager: 'svccloud-apiserver',
    clock,
    random,
  })
  const metrics = openRegistry({ isProcessWide: false })
  const caches = openCaches({ store, clock, random, log, registry: metrics })
  const epoch = process.epoch
  process.onCrash(() => {
    onServing(undefined)
    world.onAdmitting(undefined)
  })
  // Opening hashes a password in a real thread; nothing fails and no time passes meanwhile.
  const boot = { isOver: false }
  const parts = { caches, db: databaseOf(process, database, faultsAfter(faults, boot)), clock, log }
  const opening = createApp({
    ...parts,
    store,
    random,
    metrics,
    agents: NO_AGENTS,
    publicUrl: 'http://127.0.0.1:8080',
    canSendMail: true,
    checkAnswers: true,
    ...(world.stores && { sealingKeys: SEALING_KEYS, objectStorage: offerTo(process, world.stores) }),
    ...(world.clusters && { sealingKeys: SEALING_KEYS, controlPlanes: world.clusters.offerTo(process) }),
  })
  followMain(
    world,
    process,
    scheduler.track(opening).then(async (app) => {
      boot.isOver = true
      caches.start(never())
      await caches.ready()
      await look({ ...parts, store }).catch(() => undefined) // it looks again
      if (process.isAlive(epoch)) {
        onServing(documented('customer', app.customers, (fault) => void bugs.push(fault)))
        world.onAdmitting(openAdmission({ ...parts, random, platformUsers: [ADMIN.name], kinds: KINDS }))
      }
      await runLooks({ ...parts, store }, never())
    }),
  )
}

function startControllers(
  world: Surroundings,
  process: SimulatedProcess,
  shard: Shard,
  agents: ReadonlyMap<string, Agent>,
): void {
  const { scheduler, database, faults, power, backups } = world
  const clock = process.clock()
  const [random, log] = [scheduler.random, recorderOf(world, process.name)]
  const store = openClient({
    transport: transportOf(world, process),
    fieldManager: 'svccloud-controllers',
    clock,
    random,
    requestTimeoutMilliseconds: LEADER_REQUEST_TIMEOUT_MILLISECONDS,
  })
  const registry = openRegistry({ isProcessWide: false })
  const caches = openCaches({ store, clock, random, log, registry })
  const ovn = world.ovn?.attach(process)
  const parts = {
    store,
    caches,
    db: databaseOf(process, database, faults),
    clock,
    random,
    log,
    shard,
    sweepRate: openSweepRate(clock),
    ...(ovn && { ovn }),
    ...(world.stores && { objectStorage: offerTo(process, world.stores) }),
    ...(world.clusters && { controlPlanes: world.clusters.offerTo(process) }),
  }
  let mayAct = () => false
  const controllers = openControllers({
    ...parts,
    metrics: openControllerMetrics(registry),
    mayAct: () => mayAct(),
    openPowerControl: power.controlFrom(process),
    ...((backups ?? world.guests ?? world.stores) && { sealing: createSealing(SEALING_KEYS, random) }),
  })
  followMain(
    world,
    process,
    runElected(
      {
        store,
        namespace: 'svccloud-system',
        name: shard.name,
        identity: newUuid(random),
        clock,
        random,
        log,
        registry,
      },
      async (lead) => {
        mayAct = lead.mayAct
        caches.start(lead.signal)
        await runControllers(
          controllers,
          {
            ...parts,
            objectStorage: world.stores ? offerTo(process, world.stores) : { stores: [], obstacle: '' },
            usageOf: process.boundTo({ usageOf: usageSource(world, agents) }).usageOf,
          },
          lead.signal,
        )
      },
      never(),
    ),
  )
}

/** As controllers ask an agent over the network. */
function usageSource(world: Surroundings, agents: ReadonlyMap<string, Agent>): UsageSource {
  const { scheduler, processes } = world
  return async ({ metadata: { name } }) => {
    const timeout = scheduler
      .pause(USAGE_ANSWER_MILLISECONDS)
      .then(() => Promise.reject(new Unavailable(`the agent of ${name}`, undefined)))
    const agent = agents.get(name)
    const isThere =
      agent !== undefined && processes.get(`agent-${name}`)?.isRunning === true && !isCutOff(world, `agent-${name}`)
    return Promise.race([timeout, ...(isThere ? [agent.usage.list()] : [])])
  }
}

function startAgent(world: Surroundings, process: SimulatedProcess, host: Host, agents: Map<string, Agent>): void {
  const { scheduler, power, traffic, processes, disks, backups: stores, guests } = world
  const clock = process.clock()
  const [random, log] = [scheduler.random, recorderOf(world, process.name)]
  const store = openClient({ transport: transportOf(world, process), fieldManager: 'svccloud-agent', clock, random })
  const hypervisor = world.orders.hypervisor(host, host.machine.attach())
  const pools = world.hasPools() ? [POOLS[zoneOf(host.name)] ?? []].flat() : []
  const held = simulatedVolumes(host.volumes, { storage: world.storage, mounted: pools, host: host.name })
  const volumes = world.orders.volumes(host, world.disks.store(host.name, held))
  if (world.without === 'retention') volumes.release = volumes.remove
  const { sweep, milliseconds } = SWEEPS[world.without ?? ''] ?? {}
  if (sweep !== undefined)
    void sweepHost(world, process, () => sweep({ host, store, hypervisor, volumes }), milliseconds)
  process.onCrash(() => void hypervisor.close())
  const agent = openAgent({
    nodeName: host.name,
    store,
    hypervisor: process.boundTo(traffic.counted(host.name, guests?.shaken(hypervisor, host.volumes) ?? hypervisor)),
    volumes: process.boundTo(volumes),
    images: templatesOf(process, guests),
    customImages: process.boundTo(disks.images.store(host.name, simulatedImages(host.images, host.name))),
    ledger: world.without === 'kept_current' ? withoutCurrent(host.ledger) : host.ledger,
    ...(stores === undefined
      ? {}
      : {
          openBackups: ({ diskLocks, userOf }) =>
            process.boundTo(
              shakenBackups({
                host: host.name,
                volumes: host.volumes,
                disks,
                stores,
                clock,
                scheduler,
                diskLocks,
                userOf,
              }),
            ),
        }),
    clock,
    random,
    log,
    registry: openRegistry({ isProcessWide: false }),
    report: async () => ({
      agentVersion: 'simulated',
      bootId: host.bootId,
      logicalCpus: guests === undefined ? NODE_CORES : MACHINES_NODE_CORES,
      memoryMebibytes: 65_536,
      storageGibibytes: 1_000,
      hypervisor: 'simulated',
      features: [
        ...(world.ovn === undefined ? [] : [NETWORK_FEATURES.public]),
        ...(stores === undefined
          ? []
          : [BACKUPS_FEATURE, ...ZONES.filter((zone) => zone !== zoneOf(host.name)).map(backupSourceFeature)]),
      ],
      pools,
      endpoint: endpointOf(host.name),
    }),
    probeHost: power.lookFrom(host.name, (other) => processes.get(`agent-${other}`)?.isRunning === true),
  })
  agents.set(host.name, agent)
  followMain(world, process, agent.run(never()))
}

interface HostParts {
  readonly host: Host
  readonly store: Store
  readonly hypervisor: Hypervisor
  readonly volumes: VolumeStore
}

/** For as long as its agent lives. */
async function sweepHost(
  { scheduler }: Surroundings,
  process: SimulatedProcess,
  sweep: () => Promise<void>,
  milliseconds = 0,
): Promise<void> {
  const { epoch } = process
  await scheduler.repeat(
    { least: milliseconds, most: milliseconds },
    () => !process.isAlive(epoch),
    () => sweep().catch(() => {}), // it looks again
  )
}

/** As hosts did once: what a list does not name goes. */
async function removeUnnamed({ host, store, hypervisor, volumes }: HostParts): Promise<void> {
  const named = new Set<string>()
  for (const type of [Instance, Volume])
    for (const { metadata } of (await store.list<unknown, unknown>(type, { namespace: nodeNamespace(host.name) }))
      .items)
      named.add(metadata.name)
  for (const { name } of await hypervisor.list()) if (!named.has(name)) await hypervisor.forget(name)
  for (const { name } of await volumes.list()) if (!named.has(name)) await volumes.release(name)
}

/** As hosts did once: a disk that is named and not there is made, blank. */
async function makeMissing({ host, store, volumes }: HostParts): Promise<void> {
  for (const { metadata, spec } of (await store.list(Volume, { namespace: nodeNamespace(host.name) })).items) {
    const { name, deletionTimestamp } = metadata
    const isToBeMade = deletionTimestamp === undefined && spec.source?.kind === 'template' && spec.pool === undefined
    if (isToBeMade && (await volumes.inspect(name)) === undefined)
      await volumes.create({ name, sizeGibibytes: spec.sizeGibibytes })
  }
}

/** As hosts did once: they do not know which disks were in use. */
const withoutCurrent = (ledger: Ledger): Ledger => ({
  ...ledger,
  bytesOf: (kind, name) => (kind === 'current_volume' ? undefined : ledger.bytesOf(kind, name)),
})

/** By what hosts lack. A Volume of an older Kubernetes is there for seconds only: then it is deleted once more. */
const SWEEPS: Readonly<
  Record<string, { readonly sweep: (parts: HostParts) => Promise<void>; readonly milliseconds: number }>
> = {
  unnamed: { sweep: removeUnnamed, milliseconds: 20_000 },
  made_once: { sweep: makeMissing, milliseconds: 500 },
}

/** Where there are databases their image has versions. */
function templatesOf(process: SimulatedProcess, guests: Guests | undefined): TemplateStore {
  const { epoch } = process
  const templates = simulatedTemplates()
  const images = guests?.databases?.images
  if (guests?.clusters !== undefined)
    return { ...templates, built: async () => [...(await templates.built()), KUBERNETES_NODE_TEMPLATE] }
  if (images === undefined) return templates
  const numbered = async (name: string, version: string): Promise<ImageState> => {
    const state = await templates.newest(name)
    return name === DATABASE_TEMPLATE && state.is === 'ready' ? { ...state, image: { ...state.image, version } } : state
  }
  return {
    ...templates,
    newest: (name) => numbered(name, images.newest()),
    version: numbered,
    built: async () => [...(await templates.built()), DATABASE_TEMPLATE],
    onChange: (listener) => images.onChange(() => process.isAlive(epoch) && listener()),
  }
}

/** The faults once something is over. */
const faultsAfter = (faults: DatabaseFaults, opening: { isOver: boolean }): DatabaseFaults => ({
  breaksBefore: (name, sql) => opening.isOver && faults.breaksBefore(name, sql),
  losesCommit: (name) => opening.isOver && faults.losesCommit(name),
  crashesAfter: (name) => opening.isOver && faults.crashesAfter(name),
})

const NO_AGENTS: Parameters<typeof createApp>[0]['agents'] = {
  async *follow() {
    throw new Error('consoles are not simulated')
  },
  write: async () => 'unreachable',
}

/** Errors that the product itself calls bugs are violations; everything else is only traced. */
function recorderOf({ scheduler, bugs, signedIn, trace }: Surroundings, name: string): Logger {
  const say = (level: string, message: string, fields?: object) =>
    trace?.(
      `${(scheduler.nowMilliseconds / 1000).toFixed(3)} ${name} ${level} ${message} ` +
        `${fields === undefined ? '' : JSON.stringify(fields)}`,
    )
  const logger: Logger = {
    debug: () => {},
    info(message, fields) {
      say('info', message, fields)
      if (message === 'request' && fields?.['account_id'] !== undefined) signedIn.add(String(fields['request_id']))
    },
    warn: (message, fields) =>
      say('warn', message, fields && { ...fields, ...('error' in fields ? { error: causesOf(fields.error) } : {}) }),
    error(message, fields) {
      const error = fields !== undefined && 'error' in fields ? describeError(fields.error) : undefined
      say('error', message, { ...fields, error })
      const isOutage = fields !== undefined && fields.error instanceof Unavailable
      if (!isOutage && (message === 'reconcile failed by a bug' || message === 'request failed'))
        bugs.push(`${name}: ${message}: ${JSON.stringify(error)}`)
    },
    with: () => logger,
  }
  return logger
}

/** The messages of an error and its causes. */
function causesOf(error: unknown): string {
  return error instanceof Error
    ? [error.message, ...(error.cause === undefined ? [] : [causesOf(error.cause)])].join(': ')
    : String(error)
}
