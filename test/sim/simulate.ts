/** One seed: chaos, then calm, then every invariant; at the end everything is deleted and nothing may be left. */
import { writeFile } from 'node:fs/promises'
import { getPriority } from 'node:os'
import pg from 'pg'
import { columnTypes, type Database } from '../../db/kit/open.ts'
import { runAccidents } from './accidents.ts'
import { checkAddresses, watchAddresses } from './addresses.ts'
import { SimulatedPostgres } from './database.ts'
import {
  checkAudit,
  checkForeignReads,
  checkHoldings,
  checkHosts,
  checkOperations,
  isQuiet,
  watchGuests,
} from './invariants.ts'
import { checkBackups, isBackedUp, stopServersOfRestores } from './backups.ts'
import { checkChanges } from './changes.ts'
import { checkRows } from './isolation.ts'
import { checkRecoveries, runLosses } from './nodes.ts'
import { type Account, ask } from './requests.ts'
import { openAccounts, runWorkload } from './workload.ts'
import { checkEmptyNodes, openNodes } from './operators.ts'
import { newReached } from './reached.ts'
import { checkTraffic } from './traffic.ts'
import { Endless } from './scheduler.ts'
import { openWorld, type World, type WorldOptions } from './world.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Backup } from '../../resources/backup/index.ts'
import { CustomImage } from '../../resources/custom-image/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Snapshot } from '../../resources/snapshot/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { checkClusters, deleteClusters } from './cluster-invariants.ts'
import { emptyClusters, startNodes } from './clusters.ts'
import { checkDatabases, deleteDatabases } from './database-invariants.ts'
import { checkImages, stopServersOfImages } from './images.ts'
import { checkMachines, deleteMachines, watchMachines } from './machines.ts'
import { checkNetworks } from './networks.ts'
import { checkObjects, deleteObjects, watchObjects } from './objects.ts'
import { checkPorts } from './ports.ts'
import { checkSnapshots, checkStorages } from './storages.ts'

const CHAOS_MILLISECONDS = 45_000
/** Machines have to be there before anything can happen to them. */
const CHAOS_OF_MACHINES_MILLISECONDS = 120_000
/** One is archived before it can be restored, and its copy takes as long again. */
const CHAOS_OF_DATABASES_MILLISECONDS = 200_000
/** A node goes after ten minutes without use. */
const CHAOS_OF_CLUSTERS_MILLISECONDS = 1_200_000
/** Copies, restores, and some time after each. */
const CHAOS_WITH_RESTORES_MILLISECONDS = 150_000
const FORGETTING_MILLISECONDS = 15 * 60_000
/** That a host is found unreachable, fenced and recovered from takes a while. */
const CHAOS_WITH_LOSSES_MILLISECONDS = 150_000
/** The longest deadline of the kinds here, the sweeper's age, and some patience. */
const QUIET_MILLISECONDS = 90 * 60_000
const STEP_MILLISECONDS = 10_000
/** A watch that stopped without an end during the chaos is found within a minute; what it had hidden may still be
 *  written then. */
const STALE_WATCH_MILLISECONDS = 120_000
/** With nothing left to do nothing is written but leases. */
const STABLE_MILLISECONDS = 30_000

export interface SimulationOptions extends WorldOptions {
  /** Nothing is looked at but what must hold at every instant. */
  readonly isChaosOnly?: boolean
}

export interface SimulationResult {
  readonly seed: number
  readonly violations: readonly string[]
  readonly fingerprint: string
  readonly steps: number
  readonly crashes: number
  readonly operations: number
  readonly requests: number
  readonly faults: string
  /** See `reached.ts`. */
  readonly reached: readonly string[]
  readonly virtualSeconds: number
}

/** The one connection of a simulation. */
export async function connectSimulation(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, types: columnTypes })
  await client.connect()
  await inheritNiceness(client)
  return client
}

/** Each connection has a separate process and session in PostgreSQL, and Linux divides the processor between sessions
 *  first (`autogroup`): at the lowest niceness it would still get as much as all other tests together. */
async function inheritNiceness(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const path = `/proc/${rows[0]?.pid}/autogroup`
  await writeFile(path, String(getPriority())).catch(() => {}) // a kernel without such groups
}

/** Runs the seed on the database of the client, which is emptied first. Always ends: a run that goes on for ever is a
 *  violation. */
export async function simulate(
  seed: number,
  client: pg.Client,
  options: SimulationOptions = {},
): Promise<SimulationResult> {
  await empty(client)
  const addresses = watchAddresses()
  const reached = newReached()
  const world = await openWorld(seed, (scheduler) => new SimulatedPostgres(client, scheduler), {
    ...options,
    storage: addresses.storage,
    onNote: reached.note,
  })
  const { scheduler } = world
  const violations = new Set<string>()
  const counts = { operations: 0, requests: 0 }
  try {
    await live(world, options, violations, counts)
  } catch (error) {
    if (!(error instanceof Endless)) throw error
    violations.add(error.message)
  }
  const ofNodes = world.clusters?.nodes.violations ?? []
  // Stores that went back contradict what was written since.
  const ofStores = options.hasRestores === true ? [] : [...addresses.violations(), ...world.isolationViolations()]
  for (const found of [...world.bugs, ...ofStores, ...world.orders.violations(), ...ofNodes]) violations.add(found)
  const { crashes, faults } = world
  const fingerprint = scheduler.fingerprint()
  if (options.isChaosOnly !== true) await inWorld(world, reached.addOperations(world.db))
  world.end()
  await scheduler.drain()
  return {
    seed,
    violations: [...violations],
    fingerprint,
    steps: scheduler.steps,
    crashes,
    ...counts,
    faults: faults.summary,
    reached: reached.list(),
    virtualSeconds: Math.round(scheduler.nowMilliseconds / 1000),
  }
}

/** The life of a world, from the accounts to the last deletion. Adds to the violations and the counts as it goes. */
async function live(
  world: World,
  options: SimulationOptions,
  violations: Set<string>,
  counts: { operations: number; requests: number },
): Promise<void> {
  const { scheduler, db } = world
  let isChaosOver = false
  const accounts = await scheduler.track(openAccounts(db, world, 2))
  const history = runWorkload(world, accounts, () => isChaosOver)
  if (options.hasAccidents === true) runAccidents(world, accounts, () => isChaosOver)
  if (options.hasLosses === true) runLosses(world.power, scheduler, world.hosts, () => isChaosOver)
  const watch = () => {
    const { hasRestores, hasAccidents } = options
    const ofOrders = hasRestores === true || hasAccidents === true ? world.orders.look(world.hosts) : []
    const found = [
      ...watchGuests(world),
      ...world.uses.look(world.hosts),
      ...watchMachines(world),
      ...watchObjects(world),
    ]
    for (const violation of [...found, ...ofOrders]) violations.add(violation)
  }

  await scheduler.runUntil(chaosMillisecondsOf(options), undefined, watch)
  isChaosOver = true
  counts.operations = history.operations.size
  counts.requests = history.exchanges.length
  if (options.isChaosOnly === true) return
  world.calm()
  // What must hold at every instant is all that is promised of stores that went back.
  if (options.hasRestores === true) return awaitForgotten(world, watch)
  emptyClusters(world)
  await inWorld(world, stopServersOfImages(world))
  if (world.backups !== undefined) await inWorld(world, stopServersOfRestores(world))
  if (options.only === 'kubernetes') await inWorld(world, startNodes(world, accounts))
  // The machine of a database waits for room for as long as its restore may take: half a day.
  if (options.only !== undefined) await inWorld(world, openNodes(world))
  await untilQuiet(world, db, watch)
  if (!(await inWorld(world, isQuiet(world, db)))) violations.add('it never became quiet')
  const unstable = await checkStable(world, watch)
  for (const check of [
    checkOperations(world, db, accounts, history),
    checkAudit(world, accounts, history),
    checkHoldings(world, db),
    checkHosts(world),
    checkRecoveries(db),
    checkChanges(world, db),
    checkStorages(world, db),
    checkNetworks(world, db),
    checkPorts(world, db),
    checkMachines(world, db),
    checkRows(world, db),
    checkSnapshots(world, db),
    checkImages(world),
    checkObjects(world, db),
    checkDatabases(world, db),
    checkClusters(world, db),
    checkAddresses(world, db),
    checkEmptyNodes(world, db),
    checkTraffic(world, db),
    ...(world.backups === undefined ? [] : [checkBackups(world)]),
  ])
    for (const violation of await inWorld(world, check)) violations.add(violation)
  for (const violation of checkForeignReads(history)) violations.add(violation)
  for (const violation of unstable) violations.add(violation)

  await deleteEverything(world, db, accounts, watch)
  const left = await inWorld(world, world.admin.list(Server))
  if (left.items.length > 0)
    violations.add(
      `${left.items.length} servers could not be deleted: ` +
        `${left.items.map(({ metadata, status }) => `${metadata.name} ${status?.state}`).join(', ')}`,
    )
  for (const check of [
    checkHoldings(world, db),
    checkHosts(world),
    checkAddresses(world, db),
    checkStorages(world, db),
    checkImages(world),
    checkNetworks(world, db),
    checkPorts(world, db),
    checkMachines(world, db),
    checkRows(world, db),
    checkObjects(world, db),
    checkDatabases(world, db),
    checkClusters(world, db),
    ...(world.backups === undefined ? [] : [checkBackups(world)]),
  ])
    for (const violation of await inWorld(world, check)) violations.add(`after the end: ${violation}`)
}

/** Until whoever removes what is no longer named would have done so. */
async function awaitForgotten(world: World, watch: () => void): Promise<void> {
  await world.scheduler.runUntil(world.scheduler.nowMilliseconds + FORGETTING_MILLISECONDS, undefined, watch)
}

function chaosMillisecondsOf({ hasLosses, hasRestores, only }: SimulationOptions): number {
  if (hasRestores === true) return CHAOS_WITH_RESTORES_MILLISECONDS
  if (hasLosses === true) return CHAOS_WITH_LOSSES_MILLISECONDS
  if (only === 'kubernetes') return CHAOS_OF_CLUSTERS_MILLISECONDS
  if (only === 'databases') return CHAOS_OF_DATABASES_MILLISECONDS
  return only !== undefined ? CHAOS_OF_MACHINES_MILLISECONDS : CHAOS_MILLISECONDS
}

/** Lets virtual time pass until the promise is fulfilled or rejected. */
async function inWorld<T>(world: World, promise: Promise<T>): Promise<T> {
  let isOver = false
  const result = promise.finally(() => void (isOver = true))
  result.catch(() => {}) // thrown below
  while (!isOver) await world.scheduler.runUntil(world.scheduler.nowMilliseconds + 100, () => isOver)
  return result
}

async function untilQuiet(world: World, db: Database, watch: () => void): Promise<void> {
  const until = world.scheduler.nowMilliseconds + QUIET_MILLISECONDS
  while (world.scheduler.nowMilliseconds < until) {
    await world.scheduler.runUntil(world.scheduler.nowMilliseconds + STEP_MILLISECONDS, undefined, watch)
    if (world.api() === undefined || !(await inWorld(world, isQuiet(world, db)))) continue
    if (world.backups === undefined || (await inWorld(world, isBackedUp(world)))) return
  }
}

/** A world at rest stays at rest: no writes besides heartbeats and the leader's lease. */
async function checkStable(world: World, watch: () => void): Promise<string[]> {
  await world.scheduler.runUntil(world.scheduler.nowMilliseconds + STALE_WATCH_MILLISECONDS, undefined, watch)
  const before = await versions(world)
  await world.scheduler.runUntil(world.scheduler.nowMilliseconds + STABLE_MILLISECONDS, undefined, watch)
  const after = await versions(world)
  return [...after]
    .filter(([name, version]) => before.get(name) !== version)
    .map(([name]) => `server ${name} is still being written`)
}

async function versions(world: World): Promise<Map<string, string | undefined>> {
  const { items } = await inWorld(world, world.admin.list(Server))
  return new Map(items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]))
}

async function deleteEverything(
  world: World,
  db: Database,
  accounts: readonly Account[],
  watch: () => void,
): Promise<void> {
  for (let round = 0; round < DELETION_ROUNDS_MAXIMUM; round++) {
    const kept = await deleteOthers(world, accounts)
    if (kept > 0) await untilQuiet(world, db, watch)
    const { items } = await inWorld(world, world.admin.list(Server))
    const { items: storages } = await inWorld(world, world.admin.list(Storage))
    const { items: snapshots } = await inWorld(world, world.admin.list(Snapshot))
    const { items: images } = await inWorld(world, world.admin.list(CustomImage))
    const backups = world.backups === undefined ? [] : (await inWorld(world, world.admin.list(Backup))).items
    if (kept === 0 && [items, storages, snapshots, images, backups].every(({ length }) => length === 0)) return
    for (const account of accounts) {
      for (const { metadata } of snapshots)
        if (metadata.namespace === accountNamespace(account.id))
          await inWorld(world, ask(world, account, 'DELETE', `/v1/snapshots/${metadata.name}`))
      for (const { metadata } of images)
        if (metadata.namespace === accountNamespace(account.id))
          await inWorld(world, ask(world, account, 'DELETE', `/v1/custom-images/${metadata.name}`))
    }
    if (snapshots.length > 0) await untilQuiet(world, db, watch)
    if (world.backups !== undefined) await deleteBackups(world, accounts)
    for (const account of accounts) {
      const own = items.filter(({ metadata }) => metadata.namespace === accountNamespace(account.id))
      for (const { metadata } of own)
        await inWorld(world, ask(world, account, 'DELETE', `/v1/servers/${metadata.name}`))
      for (const { metadata, spec } of storages)
        if (metadata.namespace === accountNamespace(account.id) && !spec.isBoot && spec.serverId === undefined)
          await inWorld(world, ask(world, account, 'DELETE', `/v1/storages/${metadata.name}`))
    }
    await untilQuiet(world, db, watch)
  }
}

/** Asks for the end of what has servers, or is in separate worlds; answers how many there were. */
async function deleteOthers(world: World, accounts: readonly Account[]): Promise<number> {
  let count = 0
  for (const deletion of [deleteMachines, deleteObjects, deleteDatabases, deleteClusters])
    count += await inWorld(world, deletion(world, accounts))
  return count
}

/** Backups outlive their storages: they are deleted by themselves, and those that are made meanwhile in the next
 *  round. */
async function deleteBackups(world: World, accounts: readonly Account[]): Promise<void> {
  const { items } = await inWorld(world, world.admin.list(Backup))
  for (const account of accounts)
    for (const { metadata } of items)
      if (metadata.namespace === accountNamespace(account.id))
        await inWorld(world, ask(world, account, 'DELETE', `/v1/backups/${metadata.name}`))
}

/** A delete may be refused while something else goes on. */
const DELETION_ROUNDS_MAXIMUM = 4

/** Every table but the migrations' own. */
export async function empty(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ tablename: string }>(
    `select tablename from pg_tables where schemaname = 'public' and tablename not like 'kysely%'`,
  )
  await client.query(`truncate ${rows.map(({ tablename }) => `"${tablename}"`).join(', ')} cascade`)
}
