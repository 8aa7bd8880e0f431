/** The world of one seed: a Kubernetes API in process, a PostgreSQL, hosts with simulated guests, and the product's own
 *  processes
 *  (API server, two controllers, one agent per host), each of which can die at any effect and comes back by itself. */
import { type Agent, openAgent } from '../../agents/node/loop.ts'
import { type Ledger, ledgerInMemory } from '../../agents/node/ledger.ts'
import {
  newSimulatedHost,
  type SimulatedHost,
  type SimulatedHostOptions,
} from '../../agents/node/drivers/hypervisor/simulated.ts'
import { newSimulatedNetwork, type SimulatedNetwork } from '../../agents/node/drivers/hypervisor/simulated-network.ts'
import { newSimulatedStorage, simulatedVolumes } from '../../agents/node/drivers/storage/simulated.ts'
import type { HeldVolume } from '../../agents/node/drivers/storage/volume-store.ts'
import { simulatedTemplates } from '../../agents/node/images/simulated.ts'
import { createApp } from '../../apiserver/app.ts'
import type { Database } from '../../db/open.ts'
import { Unavailable } from '../../domain/problem.ts'
import { openControllers, runControllers } from '../../controllers/index.ts'
import type { UsageSource } from '../../controllers/usage/index.ts'
import { parseShard, WHOLE } from '../../controllers/shard.ts'
import { ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import type { Storage } from '../../embedded/kubernetes/storage/storage.ts'
import type { HttpService } from '../../kit/http/exchange.ts'
import { openCaches } from '../../kit/kube/caches.ts'
import { openClient } from '../../kit/kube/client.ts'
import { installCrds, readCrds } from '../../kit/kube/crd.ts'
import { Namespace } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Transport } from '../../kit/kube/transport.ts'
import { LEADER_REQUEST_TIMEOUT_MILLISECONDS, runElected } from '../../kit/reconcile/lease.ts'
import { openControllerMetrics } from '../../kit/reconcile/metrics.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { describeError, type Logger, silentLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import { Node } from '../../resources/node/index.ts'
import { Plan, Region, Template, Zone } from '../../resources/catalog/index.ts'
import { documented } from '../contract/document-check.ts'
import { type DatabaseFaults, databaseOf, type SimulatedPostgres } from './database.ts'
import { type Disks, newDisks } from './disks.ts'
import { drawFaults, type FaultPlan } from './faults.ts'
import { bmcOf, endpointOf, newPower, type Power } from './nodes.ts'
import { Scheduler, SimulatedProcess } from './scheduler.ts'
import { newTraffic, type Traffic } from './traffic.ts'
import { simulatedTransport } from './transport.ts'

const NODES = [
  { name: 'a1', zone: 'zone-a' },
  { name: 'a2', zone: 'zone-a' },
  { name: 'a3', zone: 'zone-a' },
  { name: 'b1', zone: 'zone-b' },
] as const
/** Few, so that a handful of servers fills a node. */
const NODE_CORES = 3
export const ZONES = ['zone-a', 'zone-b'] as const
export const PLAN = 'tiny'
export const TEMPLATE = 'tiny-linux'
export const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu ada@example'

/** Shared storage of each zone, in worlds that have it. */
const POOLS: Readonly<Record<string, string>> = { 'zone-a': 'pool-a', 'zone-b': 'pool-b' }

/** The longest that a simulated guest takes to start, and some more. */
const START_MILLISECONDS = 200
const USAGE_ANSWER_MILLISECONDS = 5_000
const POWER_LOOK_MILLISECONDS = 500
const RESTART_MILLISECONDS = { least: 500, most: 5_000 }

/** A host's hardware: survives its agent, and loses its guests when it restarts. */
interface Host {
  readonly name: string
  readonly machine: SimulatedHost
  readonly volumes: Map<string, HeldVolume>
  readonly ledger: Ledger
  bootId: string
}

export interface World {
  readonly scheduler: Scheduler
  readonly faults: FaultPlan
  readonly clock: Clock
  /** Kubernetes without faults: what kubectl would see. */
  readonly admin: Store
  /** PostgreSQL without faults, in its turn: for the checks. */
  readonly db: Database
  readonly hosts: readonly Host[]
  readonly disks: Disks
  readonly network: SimulatedNetwork
  readonly power: Power
  readonly traffic: Traffic
  /** What lies on shared storage, by pool and volume. */
  readonly pools: ReadonlyMap<string, ReadonlyMap<string, HeldVolume>>
  readonly processes: readonly SimulatedProcess[]
  /** The API as a client reaches it now; undefined while it is down. */
  api(): HttpService | undefined
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

/** What keeps guests whole while they move. A world without one of them must break an invariant. */
export type Defence =
  /** A guest that was handed over does not go on where it was. */
  | 'either_or'
  /** What lies on shared storage stays when a node that has lost the server lets go of it. */
  | 'retention'
  /** What management controllers say of power is true. */
  | 'power'

export interface WorldOptions {
  readonly trace?: ((line: string) => void) | undefined
  readonly without?: Defence | undefined
  /** Hosts lose their power, and are cut off with their guests. */
  readonly hasLosses?: boolean
  /** What Kubernetes writes to. */
  readonly storage?: Storage
  /** Called with each step that counts for the fingerprint. */
  readonly onNote?: (at: Date, text: string) => void
}

export async function openWorld(
  seed: number,
  postgres: (scheduler: Scheduler) => SimulatedPostgres,
  { trace, without, hasLosses = false, storage = memoryStorage(), onNote }: WorldOptions = {},
): Promise<World> {
  const scheduler = new Scheduler(seed, onNote)
  const database = postgres(scheduler)
  const outside = new SimulatedProcess('world', scheduler)
  outside.begin()
  const worldClock = outside.clock()
  const core = await openCore({ clock: worldClock, random: scheduler.random, log: silentLog, storage })
  const serve: Transport = (request) => core.handle(request, ADMIN)
  const admin = openClient({ transport: serve, fieldManager: 'kubectl', clock: worldClock, random: scheduler.random })
  const preparing = prepare(admin, worldClock, hasLosses)
  await scheduler.track(preparing)

  const byName = new Map<string, SimulatedProcess>()
  const partitionedUntil = new Map<string, number>()
  const faults = drawFaults(scheduler, {
    mayCrash: (name) => byName.has(name),
    crash: (name) => byName.get(name)?.crash(),
  })
  // In every other world on average zones have shared storage; in most of those that lose hosts, because servers leave
  // lost ones over it.
  const shared = {
    network: newSimulatedNetwork(),
    storage: newSimulatedStorage(...Object.values(POOLS)),
    disks: newDisks(),
    isPooled: scheduler.random.fraction() < (hasLosses ? 0.85 : 0.5),
  }
  const traffic = newTraffic(worldClock)
  const agents = new Map<string, Agent>()
  const bugs: string[] = []
  const signedIn = new Set<string>()
  const power = newPower({
    scheduler,
    hosts: () => world.hosts,
    isLying: without === 'power',
    onCut(name) {
      byName.get(`agent-${name}`)?.crash()
      // What was about to start has no power either.
      for (const milliseconds of [0, START_MILLISECONDS])
        scheduler.after(milliseconds, () => world.hosts.find((host) => host.name === name)?.machine.reboot())
    },
    onRestore(name) {
      const host = world.hosts.find((one) => one.name === name)
      if (host !== undefined) host.bootId = newUuid(scheduler.random)
    },
  })
  const world: World = {
    power,
    traffic,
    scheduler,
    faults,
    clock: worldClock,
    admin,
    db: databaseOf(outside, database, NO_FAULTS),
    hosts: NODES.map(({ name }) =>
      newHost(name, scheduler, {
        clock: worldClock,
        random: scheduler.random,
        network: shared.network,
        isSplitBrainAllowed: without === 'either_or',
      }),
    ),
    processes: [],
    disks: shared.disks,
    network: shared.network,
    pools: shared.storage.pools,
    bugs,
    signedIn,
    crashes: 0,
    api: () => undefined,
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
      faults.calm()
      power.calm()
      for (const { name, machine } of world.hosts) {
        shared.network.mend(name)
        for (const guest of machine.running()) machine.keepGuestBusy(guest.name, 0)
      }
      partitionedUntil.clear()
    },
    end() {
      for (const process of [outside, ...world.processes]) process.crash()
    },
  }
  let api: HttpService | undefined
  world.api = () => api

  const logOf = (name: string): Logger => recorder({ name, scheduler, bugs, signedIn, trace })
  const transportOf = (process: SimulatedProcess) =>
    simulatedTransport({
      process,
      scheduler,
      faults,
      serve,
      isPartitioned: () => isCutOff(process.name),
    })

  /** Runs `boot` in the process, again after each death. */
  function supervise(name: string, boot: (process: SimulatedProcess) => void): void {
    const process = new SimulatedProcess(name, scheduler)
    byName.set(name, process)
    ;(world.processes as SimulatedProcess[]).push(process) // filled here, read elsewhere
    const start = () => {
      process.begin()
      scheduler.note(`boot ${name}`)
      process.onCrash(() => {
        world.crashes += 1
        scheduler.after(
          RESTART_MILLISECONDS.least +
            scheduler.random.fraction() * (RESTART_MILLISECONDS.most - RESTART_MILLISECONDS.least),
          startWithPower,
        )
      })
      boot(process)
    }
    const startWithPower = () =>
      power.isOn(name.replace(/^agent-/, '')) ? start() : void scheduler.after(POWER_LOOK_MILLISECONDS, startWithPower)
    scheduler.after(scheduler.random.fraction() * 500, startWithPower)
  }
  const isCutOff = (name: string) =>
    (partitionedUntil.get(name) ?? 0) > scheduler.nowMilliseconds || power.isHidden(name.replace(/^agent-/, ''))
  /** As controllers ask an agent over the network. */
  const usageOf: UsageSource = async ({ metadata: { name } }) => {
    const timeout = scheduler
      .pause(USAGE_ANSWER_MILLISECONDS)
      .then(() => Promise.reject(new Unavailable(`the agent of ${name}`, undefined)))
    const agent = agents.get(name)
    const isThere = agent !== undefined && byName.get(`agent-${name}`)?.isRunning === true && !isCutOff(`agent-${name}`)
    return Promise.race([timeout, ...(isThere ? [agent.usage.list()] : [])])
  }
  const lives = (process: SimulatedProcess, work: Promise<unknown>) => {
    const epoch = process.epoch
    work.then(
      () => process.isAlive(epoch) && process.crash(), // a main that ends ends its process
      (error: unknown) => {
        if (!process.isAlive(epoch)) return
        bugs.push(`${process.name} ended: ${JSON.stringify(describeError(error))}`)
        process.crash()
      },
    )
  }
  const never = () => new AbortController().signal

  supervise('apiserver', (process) => {
    const clock = process.clock()
    const [random, log] = [scheduler.random, logOf(process.name)]
    const store = openClient({ transport: transportOf(process), fieldManager: 'svccloud-apiserver', clock, random })
    const metrics = openRegistry({ isProcessWide: false })
    const caches = openCaches({ store, clock, random, log, registry: metrics })
    const epoch = process.epoch
    process.onCrash(() => void (api = undefined))
    // Opening hashes a password in a real thread; nothing fails and no time passes meanwhile.
    const boot = { isOver: false }
    const opening = createApp({
      store,
      caches,
      db: databaseOf(process, database, faultsAfter(faults, boot)),
      clock,
      random,
      log,
      metrics,
      agents: NO_AGENTS,
      publicUrl: 'http://127.0.0.1:8080',
      canSendMail: true,
      checkAnswers: true,
    })
    lives(
      process,
      scheduler.track(opening).then(async (app) => {
        boot.isOver = true
        caches.start(never())
        await caches.ready()
        if (process.isAlive(epoch)) api = documented('customer', app.customers, (fault) => void bugs.push(fault))
        await new Promise(() => {})
      }),
    )
  })

  // Every other seed parts the work by zones; otherwise one leads and one waits.
  const shards = seed % 2 === 0 ? [parseShard('zones:zone-a'), parseShard('others:zone-a')] : [WHOLE, WHOLE]
  for (const [index, shard] of shards.entries()) {
    supervise(`controllers-${index + 1}`, (process) => {
      const clock = process.clock()
      const [random, log] = [scheduler.random, logOf(process.name)]
      const store = openClient({
        transport: transportOf(process),
        fieldManager: 'svccloud-controllers',
        clock,
        random,
        requestTimeoutMilliseconds: LEADER_REQUEST_TIMEOUT_MILLISECONDS,
      })
      const registry = openRegistry({ isProcessWide: false })
      const caches = openCaches({ store, clock, random, log, registry })
      const parts = { store, caches, db: databaseOf(process, database, faults), clock, random, log, shard }
      let mayAct = () => false
      const controllers = openControllers({
        ...parts,
        metrics: openControllerMetrics(registry),
        mayAct: () => mayAct(),
        openPowerControl: power.controlFrom(process),
      })
      lives(
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
            await runControllers(controllers, { ...parts, usageOf: process.boundTo({ usageOf }).usageOf }, lead.signal)
          },
          never(),
        ),
      )
    })
  }

  for (const host of world.hosts) {
    supervise(`agent-${host.name}`, (process) => {
      const clock = process.clock()
      const [random, log] = [scheduler.random, logOf(process.name)]
      const store = openClient({ transport: transportOf(process), fieldManager: 'svccloud-agent', clock, random })
      const hypervisor = host.machine.attach()
      const pools = shared.isPooled ? [POOLS[zoneOf(host.name)] ?? []].flat() : []
      const held = simulatedVolumes(host.volumes, { storage: shared.storage, mounted: pools, host: host.name })
      const volumes = shared.disks.store(host.name, held)
      if (without === 'retention') volumes.release = volumes.remove
      process.onCrash(() => void hypervisor.close())
      const agent = openAgent({
        nodeName: host.name,
        store,
        hypervisor: process.boundTo(traffic.counted(host.name, hypervisor)),
        volumes: process.boundTo(volumes),
        images: simulatedTemplates(),
        ledger: host.ledger,
        clock,
        random,
        log,
        registry: openRegistry({ isProcessWide: false }),
        report: async () => ({
          agentVersion: 'simulated',
          bootId: host.bootId,
          logicalCpus: NODE_CORES,
          memoryMebibytes: 65_536,
          storageGibibytes: 1_000,
          hypervisor: 'simulated',
          features: [],
          pools,
          endpoint: endpointOf(host.name),
        }),
        probeHost: power.lookFrom(host.name, (other) => byName.get(`agent-${other}`)?.isRunning === true),
      })
      agents.set(host.name, agent)
      lives(process, agent.run(never()))
    })
  }
  return world
}

/** Read once for all seeds. */
let crds: ReturnType<typeof readCrds> | undefined

/** The catalog, the nodes and the platform's own namespace. */
async function prepare(admin: Store, clock: Clock, hasLosses: boolean): Promise<void> {
  await installCrds(admin, await (crds ??= readCrds('crds')), clock)
  await admin.create(Namespace, { metadata: { name: 'svccloud-system' }, spec: undefined })
  await admin.create(Region, { metadata: { name: 'region-1' }, spec: { displayName: 'Region 1', country: 'DE' } })
  for (const name of ZONES)
    await admin.create(Zone, {
      metadata: { name },
      spec: { displayName: name, region: 'region-1', isClosed: false, capabilities: [] },
    })
  await admin.create(Plan, {
    metadata: { name: PLAN },
    spec: { family: 'starter', cores: 1, memoryMebibytes: 256, storageGibibytes: 1, priceMonthlyCents: 100 },
  })
  await admin.create(Template, {
    metadata: { name: TEMPLATE },
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
  for (const { name, zone } of NODES) {
    await admin.create(Node, {
      metadata: { name },
      spec: {
        zone,
        rack: 'rack-1',
        roles: ['compute'],
        isCordoned: false,
        cpuOvercommit: 1,
        reservedMemoryMebibytes: 0,
        ...(hasLosses ? { bmc: bmcOf(name) } : {}),
      },
    })
  }
}

export const zoneOf = (node: string): string => NODES.find(({ name }) => name === node)?.zone ?? ''

function newHost(
  name: string,
  scheduler: Scheduler,
  options: SimulatedHostOptions & { readonly random: Random },
): Host {
  return {
    name,
    machine: noted(newSimulatedHost({ ...options, name }), scheduler),
    volumes: new Map(),
    ledger: ledgerInMemory(),
    bootId: newUuid(options.random),
  }
}

/** The same host, whose misfortunes are noted. */
const noted = (machine: SimulatedHost, scheduler: Scheduler): SimulatedHost => ({
  ...machine,
  crashGuest(name) {
    scheduler.note('guest crashes')
    machine.crashGuest(name)
  },
  powerOffGuest(name) {
    scheduler.note('guest powers off')
    machine.powerOffGuest(name)
  },
  hangGuest(name) {
    scheduler.note('guest hangs')
    machine.hangGuest(name)
  },
  keepGuestBusy(name, neededDowntimeMilliseconds) {
    if (neededDowntimeMilliseconds > 0) scheduler.note('guest is busy')
    machine.keepGuestBusy(name, neededDowntimeMilliseconds)
  },
  failNextStart(reason) {
    scheduler.note('guest will not start')
    machine.failNextStart(reason)
  },
})

const NO_FAULTS: DatabaseFaults = { breaksBefore: () => false, losesCommit: () => false, crashesAfter: () => false }

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
function recorder({
  name,
  scheduler,
  bugs,
  signedIn,
  trace,
}: {
  readonly name: string
  readonly scheduler: Scheduler
  readonly bugs: string[]
  readonly signedIn: Set<string>
  readonly trace: ((line: string) => void) | undefined
}): Logger {
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
