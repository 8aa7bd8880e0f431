/** Object storage that people enable, use, move and remove while everything is shaken, in separate worlds; and what
 *  must hold of it: what was acknowledged is there, a key that was replaced opens nothing, and what has gone left
 *  nothing. */
import type { Database } from '../../db/kit/open.ts'
import { archiveTenantOf } from '../../db/database/index.ts'
import { tenantOf } from '../../db/object-storage/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { ObjectStorage } from '../../resources/object-storage/index.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import { ZONES } from './catalog.ts'
import { accepts, change, type Change, type ClientKey, keeperOf } from './object-clients.ts'
import type { KnownObject, ObjectLedger, Place } from './ledgers.ts'
import type { ObjectStores, StoredTenant } from './object-stores.ts'
import { type Account, ask, type Send } from './requests.ts'
import type { World } from './world.ts'
import { setQuotas } from '../accounts.ts'

interface Answer {
  readonly object_storage?: {
    readonly endpoint: string
    readonly access_key_id: string
    readonly bucket_prefix: string | null
  }
  readonly credentials?: { readonly access_key_id: string; readonly secret_access_key: string }
}

const CLIENTS_OF_PLACE = 3
const KEYS = 14
/** Whoever begins with so many is copied in more than one page. */
const MANY_OBJECTS = 130
const FILLERS = 8
const REST_MILLISECONDS = 10_000
const GATEWAY_MILLISECONDS = { least: 10_000, most: 25_000 }

interface Actors {
  readonly world: World
  readonly stores: ObjectStores
  readonly send: Send
  readonly isOver: () => boolean
}

export function runObjects(
  world: World,
  accounts: readonly Account[],
  send: Send,
  isOver: () => boolean,
): ObjectLedger {
  const { scheduler, stores } = world
  if (stores === undefined) throw new Error('this world keeps no objects')
  const { random } = scheduler
  const actors = { world, stores, send, isOver }
  const places = accounts.flatMap((account) =>
    ZONES.map(
      (zone): Place => ({
        account,
        zone,
        key: undefined,
        prefix: '',
        objects: new Map(),
        buckets: new Set(),
        dead: new Set(),
        isLeaving: false,
        violations: new Set(),
      }),
    ),
  )
  scheduler.after(
    GATEWAY_MILLISECONDS.least + random.fraction() * (GATEWAY_MILLISECONDS.most - GATEWAY_MILLISECONDS.least),
    () => {
      scheduler.note('a zone gains a gateway')
      stores.gateway.zones.push(ZONES[0])
    },
  )
  for (const place of places) {
    void runOwner(actors, place)
    for (let client = 0; client < CLIENTS_OF_PLACE; client += 1) void runClient(actors, place)
  }
  runRules(actors, accounts)
  runStoreNature(actors)
  return { places }
}

/** What its owner asks the API for. */
const runOwner = ({ world, stores, send, isOver }: Actors, place: Place): Promise<void> => {
  const { scheduler, admin } = world
  const { random } = scheduler
  const path = `/v1/object-storage/${place.zone}`
  return scheduler.repeat({ least: 500, most: 6_000 }, isOver, async () => {
    const { account, zone } = place
    const dice = random.fraction()
    if (place.key === undefined || dice < 0.1) {
      await take(place, () => send(account, 'POST', '/v1/object-storage', { zone }))
      if (place.key !== undefined && random.fraction() < 0.5 && place.objects.size === 0) await fill(stores, place)
    } else if (dice < 0.3) await rotate(place, () => send(account, 'POST', `${path}/rotate-keys`))
    else if (dice < 0.45) await take(place, () => send(account, 'GET', `${path}/credentials`))
    else if (dice < 0.8) {
      const operation = (await send(account, 'POST', `${path}/migrate`))?.operation?.id
      if (operation === undefined || random.fraction() > 0.12) return
      await scheduler.pause(random.fraction() * 20_000)
      await send(account, 'POST', `/v1/operations/${operation}/cancel`)
    } else if (dice < 0.81) {
      const namespace = accountNamespace(account.id)
      const object = (await admin.list(ObjectStorage, { namespace })).items.find(({ spec }) => spec.zone === zone)
      if (object === undefined) return
      place.isLeaving = true
      await admin.delete(ObjectStorage, { namespace, name: object.metadata.name }).catch(() => {})
    } else await send(account, 'GET', '/v1/object-storage')
  })
}

/** Its key is what was answered last. */
async function take(place: Place, request: () => Promise<unknown>): Promise<void> {
  const { object_storage: storage, credentials } = ((await request()) ?? {}) as Answer // as the route says
  if (storage !== undefined) place.prefix = storage.bucket_prefix ?? place.prefix
  const endpoint = storage?.endpoint ?? place.key?.endpoint
  if (credentials === undefined || endpoint === undefined) return
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = credentials
  if (place.key !== undefined && place.key.accessKeyId !== accessKeyId) forget(place)
  place.key = { accessKeyId, secretAccessKey, endpoint }
}

/** Another one was made where it had gone. */
function forget(place: Place): void {
  place.objects.clear()
  place.buckets.clear()
  place.isLeaving = false
}

/** What was known before is refused once another one was answered. */
async function rotate(place: Place, request: () => Promise<unknown>): Promise<void> {
  const before = [place.key?.secretAccessKey ?? '', ...place.dead]
  await take(place, async () => {
    const answer = (await request()) as Answer | undefined
    if (answer?.credentials !== undefined) {
      for (const secret of before) place.dead.add(secret)
      place.dead.delete(answer.credentials.secret_access_key)
    }
    return answer
  })
}

const bucketOf = ({ prefix }: Place): string => `${prefix || 'free-'}data`

const contentOf = (random: { fraction(): number }, key: string): string =>
  `${key} ${Math.floor(random.fraction() * 1e12)
    .toString(36)
    .padStart(10, '0')}`

/** So many objects that a pass over them takes pages, stored by several clients. */
async function fill(stores: ObjectStores, place: Place): Promise<void> {
  const { random } = stores.scheduler
  const keys = Array.from({ length: MANY_OBJECTS }, (_none, index) => `many/${String(index).padStart(3, '0')}`)
  const one = async (): Promise<void> => {
    for (let name = keys.pop(); name !== undefined && place.key !== undefined && !place.isLeaving; name = keys.pop()) {
      const known: KnownObject = { may: [undefined], restsUntil: 0, isBusy: false }
      const bucket = bucketOf(place)
      place.objects.set(`${bucket}/${name}`, known)
      const content = contentOf(random, name)
      const wanted = { do: 'put', bucket, key: name, content, isInParts: false, tags: [] } as const
      await tryOut(stores, { key: place.key, known, wanted })
    }
  }
  await Promise.all(Array.from({ length: FILLERS }, one))
}

const runClient = ({ world, stores, isOver }: Actors, place: Place): Promise<void> => {
  const { scheduler } = world
  const { random } = scheduler
  return scheduler.repeat({ least: 20, most: 700 }, isOver, async () => {
    const { key, objects } = place
    if (key === undefined) return
    const bucket = bucketOf(place)
    if (!place.buckets.has(bucket)) {
      if (place.isLeaving) return
      if ((await change(stores, key, { do: 'make bucket', bucket })) === 'done') place.buckets.add(bucket)
      return
    }
    if (place.isLeaving) return void (await emptied(stores, place, bucket))
    const name = `k${Math.floor(random.fraction() * KEYS)} &+é`
    const known = objects.get(`${bucket}/${name}`) ?? { may: [undefined], restsUntil: 0, isBusy: false }
    if (known.isBusy || known.restsUntil > scheduler.nowMilliseconds) return
    for (const lost of lostObjects(place, keeperOf(stores, stores.at(key.endpoint), key.accessKeyId)))
      place.violations.add(lost)
    objects.set(`${bucket}/${name}`, known)
    const wanted: Change =
      random.fraction() < 0.2
        ? { do: 'remove', bucket, key: name }
        : {
            do: 'put',
            bucket,
            key: name,
            content: contentOf(random, name),
            isInParts: random.fraction() < 0.3,
            tags: random.fraction() < 0.3 ? ['colour', `${Math.floor(random.fraction() * 99)}`] : [],
          }
    await tryOut(stores, { key, known, wanted })
  })
}

interface Attempt {
  readonly key: ClientKey
  readonly known: KnownObject
  readonly wanted: Change
}

async function tryOut(stores: ObjectStores, { key, known, wanted }: Attempt): Promise<void> {
  known.isBusy = true
  const outcome = await change(stores, key, wanted)
  known.isBusy = false
  const after = wanted.do === 'put' ? wanted.content : undefined
  if (outcome === 'done') known.may = [after]
  if (outcome !== 'unknown') return
  known.may = [...known.may, after]
  known.restsUntil = stores.scheduler.nowMilliseconds + REST_MILLISECONDS
}

/** Takes away one object after the other, then the bucket. */
async function emptied(stores: ObjectStores, place: Place, bucket: string): Promise<void> {
  if (place.key === undefined) return
  const [left] = [...place.objects].filter(
    ([, { may, isBusy }]) => !isBusy && may.some((content) => content !== undefined),
  )
  if (left === undefined) {
    if ((await change(stores, place.key, { do: 'remove bucket', bucket })) === 'done') place.buckets.delete(bucket)
    return
  }
  const [path, known] = left
  if (known.restsUntil > stores.scheduler.nowMilliseconds) return
  const wanted = { do: 'remove', bucket, key: path.slice(bucket.length + 1) } as const
  await tryOut(stores, { key: place.key, known, wanted })
}

/** Staff suspend accounts and change their quotas. */
function runRules({ world, isOver }: Actors, accounts: readonly Account[]): void {
  const { scheduler, db } = world
  const { random } = scheduler
  void scheduler.repeat({ least: 4_000, most: 15_000 }, isOver, async () => {
    const account = scheduler.pick(accounts)
    if (account === undefined) return
    const isSuspended = random.fraction() < 0.3
    scheduler.note(isSuspended ? 'staff suspends' : 'staff lifts suspension')
    await suspend(db, account, isSuspended ? scheduler.now() : null)
    await limit(db, account, random.fraction() < 0.3 ? 0 : 1_024)
  })
}

const suspend = (db: Database, { id }: Account, at: Date | null): Promise<unknown> =>
  db.updateTable('account').set({ suspended_by_staff_at: at }).where('id', '=', id).execute()

const limit = (db: Database, { id }: Account, gibibytes: number): Promise<unknown> =>
  setQuotas(db, gibibytes, { accountId: id, name: 'object_storage_gibibytes' })

/** Stores have accidents, and so have the processes that use them. */
export function runStoreNature({ world, stores, isOver }: Omit<Actors, 'send'>): void {
  const { scheduler } = world
  const { random } = scheduler
  void scheduler.repeat({ least: 4_000, most: 18_000 }, isOver, async () => {
    const dice = random.fraction()
    const store = random.fraction() < 0.5 ? stores.single : stores.gateway
    if (dice < 0.35) stores.cut(store, 500 + random.fraction() * 8_000)
    else if (dice < 0.55) stores.slowDown(store, 2_000 + random.fraction() * 10_000)
    else if (dice < 0.85) scheduler.pick(world.processes.filter((process) => process.isRunning))?.crash()
    else world.partition(scheduler.pick(world.processes)?.name ?? '', 2_000 + random.fraction() * 20_000)
  })
}

/** No key opens anything that was replaced before. Looked at at every instant. */
export function watchObjects({ stores, objects }: Pick<World, 'stores' | 'objects'>): string[] {
  if (stores === undefined || objects === undefined) return []
  return objects.places.flatMap(({ key, dead }) =>
    key === undefined || dead.size === 0
      ? []
      : [stores.single, stores.gateway].flatMap((store) =>
          [...store.tenants.values()]
            .filter(({ settings }) => settings.accessKeyId === key.accessKeyId && dead.has(settings.secretAccessKey))
            .map(() => `${store.backend} lets in a key that was replaced`),
        ),
  )
}

/** Nothing of them is under way, and stores have what the rows say. */
export async function areObjectsQuiet({ admin, stores }: World): Promise<boolean> {
  if (stores === undefined) return true
  const { items } = await admin.list(ObjectStorage)
  return items.every(
    (object) =>
      activeOperationOf(object) === undefined &&
      (object.metadata.deletionTimestamp === undefined ||
        object.status?.conditions?.some(({ reason }) => reason === 'InUse') === true),
  )
}

/** What was acknowledged is there, where the entrance points; and an admitted client has the key that the row has. */
export async function checkObjects(world: World, db: Database): Promise<string[]> {
  const { stores, objects } = world
  if (stores === undefined) return []
  const violations = await checkTenants(world, db)
  for (const place of objects?.places ?? []) {
    violations.push(...place.violations)
    const path = `/v1/object-storage/${place.zone}/credentials`
    const { credentials } = ((await ask(world, place.account, 'GET', path))?.json ?? {}) as Answer // as the route says
    if (credentials === undefined || place.key === undefined) continue
    if (credentials.access_key_id !== place.key.accessKeyId) continue // another one that nobody has used
    const key = { ...place.key, secretAccessKey: credentials.secret_access_key }
    if (!accepts(stores, key)) violations.push(`the key of ${place.account.id} in ${place.zone} opens nothing`)
    const keeper = keeperOf(stores, stores.at(key.endpoint), key.accessKeyId)
    violations.push(...lostObjects(place, keeper))
  }
  return violations
}

/** Objects that nobody changes just now. */
const lostObjects = ({ objects, zone }: Place, keeper: StoredTenant | undefined): readonly string[] =>
  [...objects].flatMap(([path, { may, isBusy }]) => {
    if (keeper === undefined) return []
    const at = path.indexOf('/')
    const is = keeper.buckets.get(path.slice(0, at))?.get(path.slice(at + 1))?.content
    return isBusy || may.includes(is)
      ? []
      : [`object ${path} in ${zone} is ${is}, and ${may.join(' or ')} was acknowledged`]
  })

/** Every tenant of a store is of a row, has what the row says, and is where the row says. */
async function checkTenants({ admin, stores, clock }: World, db: Database): Promise<string[]> {
  if (stores === undefined) return []
  const rows = await db.selectFrom('object_storage').selectAll().execute()
  const archives = await db.selectFrom('database_archive').selectAll().execute()
  const accounts = await db.selectFrom('account').select(['id', 'suspended_by_staff_at']).execute()
  const named = (await admin.list(ObjectStorage)).items.map(({ metadata }) => `${metadata.namespace} ${metadata.name}`)
  const own = rows.map((row) => ({ row, id: tenantOf({ accountId: row.account_id, id: row.id }) }))
  const archived = new Set(archives.map(({ bucket_prefix: bucketPrefix }) => archiveTenantOf({ bucketPrefix })))
  const violations: string[] = []
  for (const { backend, tenants } of [stores.single, stores.gateway])
    for (const id of tenants.keys()) {
      const known = own.find((one) => one.id === id)
      const isExpected =
        known === undefined
          ? archived.has(id) && backend === 'svc-s3-single'
          : backend === 'svc-s3-single'
            ? known.row.backend === 'svc-s3-single' || known.row.moved_at !== null
            : known.row.backend === 'rgw' || known.row.move !== null
      if (!isExpected) violations.push(`tenant ${id} is left in ${backend}`)
    }
  for (const { row, id } of own) {
    if (!named.includes(`${accountNamespace(row.account_id)} ${row.id}`))
      violations.push(`object storage ${row.id} is claimed, and does not exist`)
    const store = row.backend === 'rgw' ? stores.gateway : stores.single
    const isSuspended = accounts.some((one) => one.id === row.account_id && one.suspended_by_staff_at !== null)
    const settings = store.tenants.get(id)?.settings
    if (settings?.isSuspended !== isSuspended || settings.isFrozen)
      violations.push(
        `${id} is suspended ${settings?.isSuspended} and frozen ${settings?.isFrozen} at ${clock.now().toISOString()}`,
      )
  }
  return violations
}

/** Asks for the end of all of them, and empties what they hold; answers how many there are. */
export async function deleteObjects({ admin, stores, db }: World, accounts: readonly Account[]): Promise<number> {
  if (stores === undefined) return 0
  for (const account of accounts) await suspend(db, account, null)
  const { items } = await admin.list(ObjectStorage)
  for (const store of [stores.single, stores.gateway])
    for (const [id, { buckets, settings }] of store.tenants)
      if (!id.startsWith('database-archive.') && settings.upstream === undefined) buckets.clear()
  for (const { metadata } of items)
    await admin.delete(ObjectStorage, { namespace: metadata.namespace ?? '', name: metadata.name }).catch(() => {})
  return items.length
}
