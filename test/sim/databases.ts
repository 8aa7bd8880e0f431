/** Managed databases that people make, use, restore and delete while everything is shaken, in separate worlds. */
import { dataStorageName } from '../../controllers/nouns/database/machine.ts'
import type { Database as Db } from '../../db/kit/open.ts'
import { archiveBucketOf, archiveTenantOf } from '../../db/database/index.ts'
import { DATABASE_TEMPLATE } from '../../domain/managed-machine/rules.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { Plan, Template } from '../../resources/catalog/index.ts'
import { Database, type DatabaseSpec, type DatabaseStatus } from '../../resources/database/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Network } from '../../resources/network/index.ts'
import { TINY_LINUX, TINY_PLAN } from '../catalog.ts'
import { ZONES } from './catalog.ts'
import type { Cluster } from './database-machines.ts'
import type { DatabaseLedger } from './ledgers.ts'
import { runStoreNature } from './objects.ts'
import type { Account, Send } from './requests.ts'
import type { World } from './world.ts'

export type DatabaseObject = KubeObject<DatabaseSpec, DatabaseStatus>

interface Actors {
  readonly world: World
  readonly ledger: DatabaseLedger
  readonly send: Send
  readonly isOver: () => boolean
}

interface Answer {
  readonly database?: { readonly id: string }
  readonly credentials?: { readonly password: string }
  readonly window?: { readonly earliest_recoverable_at: string | null; readonly latest_recoverable_at: string | null }
}

const DATABASES_MAXIMUM = 3
const IMAGE_MILLISECONDS = { least: 15_000, most: 45_000 }
const PLAN_NAME = 'db-1c-2g'
/** The world begins at midnight: machines of databases with this schedule get newer images while it lasts. */
const WINDOW_OF_NOW = '0 0 * * *'

export function runDatabases(
  world: World,
  accounts: readonly Account[],
  send: Send,
  isOver: () => boolean,
): DatabaseLedger {
  const { scheduler, stores, admin, guests } = world
  if (stores === undefined || guests?.databases === undefined) throw new Error('this world has no databases')
  const { images } = guests.databases
  const ledger: DatabaseLedger = { violations: new Set(), known: new Map(), restores: new Map() }
  const spec = { ...TINY_LINUX, image: { built: DATABASE_TEMPLATE } as const }
  void admin.create(Template, { metadata: { name: DATABASE_TEMPLATE }, spec }).catch(() => {})
  const plan = { ...TINY_PLAN, memoryMebibytes: 256 }
  void admin.create(Plan, { metadata: { name: PLAN_NAME }, spec: plan }).catch(() => {})
  const actors = { world, ledger, send, isOver }
  for (const account of accounts) {
    void runNetworkOwner(actors, account)
    for (const _each of [1, 2]) void runOwner(actors, account)
  }
  void runKubectl(actors)
  void watchClaims(actors)
  runStoreNature({ world, stores, isOver })
  void scheduler.repeat(IMAGE_MILLISECONDS, isOver, async () => {
    scheduler.note('hosts have a newer image of databases')
    images.publish()
  })
  return ledger
}

/** A network in each zone. */
const runNetworkOwner = ({ world: { scheduler, admin }, send, isOver }: Actors, account: Account): Promise<void> =>
  scheduler.repeat({ least: 300, most: 2_000 }, isOver, async () => {
    const { random } = scheduler
    const { items } = await admin.list(Network, { namespace: accountNamespace(account.id) })
    const zone = ZONES.find((each) => !items.some(({ spec }) => spec.zone === each))
    if (zone !== undefined)
      await send(account, 'POST', '/v1/networks', { zone, name: `net ${Math.floor(random.fraction() * 99)}` })
  })

const runOwner = (actors: Actors, account: Account): Promise<void> => {
  const { world, send, isOver, ledger } = actors
  const { scheduler, admin } = world
  const { random } = scheduler
  const namespace = accountNamespace(account.id)
  return scheduler.repeat({ least: 300, most: 5_000 }, isOver, async () => {
    const { items } = await admin.list(Database, { namespace })
    const database = scheduler.pick(items)
    const dice = random.fraction()
    if (database === undefined || (dice < 0.15 && items.length < DATABASES_MAXIMUM)) return makeOne(actors, account)
    const path = `/v1/databases/${database.metadata.name}`
    if (dice < 0.28) await rotate(actors, account, database)
    else if (dice < 0.48) await send(account, 'PATCH', path, { backup_schedule: WINDOW_OF_NOW })
    else if (dice < 0.52) await send(account, 'PATCH', path, { name: `name ${Math.floor(random.fraction() * 5)}` })
    else if (dice < 0.56) await send(account, 'GET', `${path}/credentials`)
    else if (dice < 0.86) {
      const own = [...ledger.known].filter(([, known]) => known.account === account).map(([id]) => id)
      await restore(actors, account, scheduler.pick(own) ?? database.metadata.name)
    } else if ((items.length > 1 || random.fraction() < 0.3) && !isSpared(random, database))
      await send(account, 'DELETE', `${path}?keep_backups_days=${scheduler.pick([0, 7, 7])}`)
  })
}

async function makeOne({ world, send, ledger }: Actors, account: Account): Promise<void> {
  const { scheduler, admin } = world
  const { items } = await admin.list(Network, { namespace: accountNamespace(account.id) })
  const network = scheduler.pick(items)
  if (network === undefined) return
  const name = `name ${Math.floor(scheduler.random.fraction() * 9)}`
  const body = { zone: network.spec.zone, name, network_id: network.metadata.name, database_name: 'shop' }
  const made = (await send(account, 'POST', '/v1/databases', { ...body, storage_gibibytes: 5 })) as Answer | undefined
  if (made?.database !== undefined) ledger.known.set(made.database.id, { account, lineage: undefined })
}

/** To the first or the last moment, one between, or as it is. */
async function restore({ world, send, ledger }: Actors, account: Account, from: string): Promise<void> {
  const { scheduler, admin } = world
  const { random } = scheduler
  const { items } = await admin.list(Database, { namespace: accountNamespace(account.id) })
  if (items.length >= DATABASES_MAXIMUM) return
  const path = `/v1/databases/${from}`
  const { window } = ((await send(account, 'GET', `${path}/backups`)) ?? {}) as Answer // as the route says
  const [earliest, latest] = [window?.earliest_recoverable_at, window?.latest_recoverable_at]
  if (earliest == null || latest == null) return
  const between = Date.parse(earliest) + random.fraction() * (Date.parse(latest) - Date.parse(earliest))
  const target = scheduler.pick([null, latest, latest, earliest, new Date(between).toISOString()]) ?? null
  const name = `name ${Math.floor(random.fraction() * 9)}`
  const size = random.fraction() < 0.4 ? { storage_gibibytes: 7 } : {}
  const made = (await send(account, 'POST', `${path}/restore`, { name, target_time: target, ...size })) as
    | Answer
    | undefined
  if (made?.database === undefined) return
  ledger.known.set(made.database.id, { account, lineage: undefined })
  ledger.restores.set(made.database.id, { from, target })
}

/** Once it is answered nobody gets in with the password before. */
async function rotate({ world, send, ledger }: Actors, account: Account, database: DatabaseObject): Promise<void> {
  const { name: id } = database.metadata
  const before = await world.db
    .selectFrom('database')
    .select('password_generation')
    .where('account_id', '=', account.id)
    .where('id', '=', id)
    .executeTakeFirst()
  const answer = (await send(account, 'POST', `/v1/databases/${id}/rotate-credentials`)) as Answer | undefined
  if (answer?.credentials === undefined || before === undefined) return
  for (const cluster of clustersOf(world, database))
    if (cluster.passwordGeneration <= before.password_generation)
      ledger.violations.add(`the old password of database ${id} holds after its rotation was answered`)
}

const serialOf = (database: DatabaseObject): string => dataStorageName(database).replaceAll('-', '').slice(0, 20)

export const clustersOf = ({ guests }: Pick<World, 'guests'>, database: DatabaseObject): readonly Cluster[] =>
  guests?.databases?.clustersOn(serialOf(database)) ?? []

/** A deletion ends a restore, by kubectl as well: few would reach their end if every deletion struck one. */
const isSpared = (random: World['scheduler']['random'], { spec, status }: DatabaseObject): boolean =>
  spec.operation?.kind === 'database.restore' && status?.operation?.status !== 'succeeded' && random.fraction() < 0.95

/** Operators change and delete past the API what may be. */
const runKubectl = ({ world: { scheduler, admin }, isOver }: Actors): Promise<void> =>
  scheduler.repeat({ least: 6_000, most: 25_000 }, isOver, async () => {
    const database = scheduler.pick((await admin.list(Database)).items)
    if (database === undefined) return
    const key = { namespace: database.metadata.namespace ?? '', name: database.metadata.name }
    if (scheduler.random.fraction() < 0.3 && !isSpared(scheduler.random, database))
      await admin.delete(Database, key).catch(() => {})
    else await admin.patch(Database, key, { spec: { backupRetentionDays: 8 } }).catch(() => {})
  })

/** What is said to be recoverable is, at every look. */
const watchClaims = ({ world, ledger, isOver }: Actors): Promise<void> =>
  world.scheduler.repeat({ least: 700, most: 1_500 }, isOver, async () => {
    for (const violation of await checkRecoverable(world, world.db, ledger)) ledger.violations.add(violation)
  })

/** What can be restored to by the word of the platform can be; and what was restored is what was meant. */
export async function checkRecoverable(world: World, db: Db, { known, restores }: DatabaseLedger): Promise<string[]> {
  const { admin, stores, guests, clock } = world
  const machines = guests?.databases
  if (stores === undefined || machines === undefined) return []
  const violations = [...machines.violations]
  const databases = (await admin.list(Database)).items
  for (const row of await db.selectFrom('database_archive').selectAll().execute()) {
    const place = { bucketPrefix: row.bucket_prefix }
    const bucket = stores.single.tenants.get(archiveTenantOf(place))?.buckets.get(archiveBucketOf(place))
    const id = known.get(row.id)
    if (id !== undefined) id.lineage ??= machines.lineageIn(bucket)
    const object = databases.find(
      ({ metadata }) => metadata.namespace === accountNamespace(row.account_id) && metadata.name === row.id,
    )
    const isOver = row.origin !== null && (row.kept_until ?? new Date(0)) <= clock.now()
    const said = row.origin?.backups ?? object?.status?.backups
    for (const moment of [said?.earliestAt, said?.latestAt])
      if (!isOver && moment !== undefined && !machines.reaches(bucket, Date.parse(moment)))
        violations.push(`database ${row.id} is said to be recoverable to ${moment}, and is not`)
  }
  for (const database of databases) {
    const asked = restores.get(database.metadata.name)
    const origin = known.get(asked?.from ?? '')
    for (const { from } of clustersOf(world, database)) {
      const isRight =
        from?.lineage === (asked && origin?.lineage) &&
        (asked?.target == null || (from?.isTarget === true && from.target === Date.parse(asked.target)))
      if (!isRight)
        violations.push(
          `database ${database.metadata.name} began as ${JSON.stringify(from)}, and was asked for as ` +
            `${JSON.stringify({ ...asked, lineage: origin?.lineage })}`,
        )
    }
  }
  return violations
}
