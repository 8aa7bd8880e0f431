/** Object storage of an account, by zone. Rows in PostgreSQL are the source of truth. The store is brought up to date
 *  with them before a key is returned, so that the key works and the previous one does not. */
import { unknownZone } from '../../../changes/kit/zone.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { type IdleFacts, requireIdle } from '../../../domain/idle-rules.ts'
import { conflict, Problem, Unavailable, zoneLacks } from '../../../domain/problem.ts'
import {
  addObjectStorage,
  findObjectStorageIn,
  listObjectStorages,
  type NewObjectStorage,
  objectStorageOwner,
  objectStorageQuotaBytes,
  type ObjectStorageRow,
  removeObjectStorage,
  replaceObjectStorageSecret,
  tenantFacts,
  tenantOf,
  whileTelling,
} from '../../../db/object-storage/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import type { Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { offerIn } from '../../../integrations/object-storage/configuration.ts'
import type { ObjectStorage as Served } from '../../../integrations/object-storage/control.ts'
import { newSecret, newTenantKeys } from '../../../integrations/object-storage/keys.ts'
import { moveObstacle } from '../../../integrations/object-storage/pass.ts'
import {
  sendTenantSettings,
  type TenantStores,
  tenantStoresOf,
} from '../../../integrations/object-storage/tenant-stores.ts'
import { newOrderedUuid, newUuid } from '../../../kit/sys/random.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import {
  enableObjectStorage,
  getObjectStorageCredentials,
  listObjectStorage,
  migrateObjectStorage,
  ObjectStorage,
  type ObjectStorageReach,
  type ObjectStorageView,
  rotateObjectStorageKeys,
  toObjectStorageView,
} from '../../../resources/object-storage/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { begin, type Verb } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import { createObject } from '../../kit/change/create.ts'
import { objectStorageNotOffered } from './rules.ts'
import { bucketEndpoints } from './buckets.ts'
import {
  credentialsOf,
  findIn,
  NOWHERE,
  type ObjectStorageParts,
  requireRow,
  requireSealing,
  requireTold,
} from './tenant.ts'

/** Shown while no store serves the tenant: no endpoint, and no more than the lowest durability is promised. */
const UNREACHABLE = { endpoint: '', certificateAuthority: null, durability: 'single_copy' } as const
const MAKING_MILLISECONDS = 5_000
const LOOK_MILLISECONDS = 50

export function objectStorageEndpoints(parts: ObjectStorageParts): readonly Endpoint[] {
  return [
    customerEndpoint(listObjectStorage, async ({ caller: { accountId } }) => {
      const rows = await listObjectStorages(parts.db, accountId)
      return { status: 200, body: { items: await viewsOf(parts, rows), next_cursor: null } }
    }),
    customerEndpoint(enableObjectStorage, async (call) => ({ status: 201, body: await enable(parts, call) })),
    customerEndpoint(getObjectStorageCredentials, async (call) => {
      const row = await findIn(parts, call.caller.accountId, call.params.zone)
      const credentials = credentialsOf(parts, row)
      await parts.db.transaction().execute((tx) => appendAudit(tx, auditEntryOf(call, { resourceId: row.id }), parts))
      return { status: 200, body: { credentials } }
    }),
    customerEndpoint(rotateObjectStorageKeys, async (call) => ({ status: 200, body: await rotate(parts, call) })),
    customerEndpoint(migrateObjectStorage, async (call) => ({ status: 202, body: await migrate(parts, call) })),
    ...bucketEndpoints(parts),
  ]
}

/** As lists show it; undefined for unknown ids and those of another account. */
export async function objectStorageOf(
  parts: Parts,
  accountId: string,
  id: string,
): Promise<ObjectStorageView | undefined> {
  const rows = await listObjectStorages(parts.db, accountId)
  return (
    await viewsOf(
      parts,
      rows.filter((row) => row.id === id),
    )
  )[0]
}

/** The backend for new tenants of the zone, or for tenants of the given backend. Throws 503 where none serves them. */
function requireServed({ objectStorage = NOWHERE }: Parts, zone: string, backend?: Served['backend']): Served {
  const offer = offerIn(objectStorage, zone, backend)
  if ('obstacle' in offer) throw objectStorageNotOffered(zone, offer.obstacle)
  return offer
}

async function enable(parts: ObjectStorageParts, call: Call<typeof enableObjectStorage, Customer>): Promise<object> {
  const {
    caller: { accountId },
    body: { zone },
    now,
  } = call
  if (parts.caches.of(Zone).get({ name: zone }) === undefined) throw unknownZone(worldOf(parts.caches), zone)
  const known = await findObjectStorageIn(parts.db, accountId, zone)
  const { backend } = requireServed(parts, zone, known?.backend)
  requireSealing(parts)
  const isNew = known === undefined && (await claim(parts, call, { backend, createdAt: now }))
  const row = await findObjectStorageIn(parts.db, accountId, zone)
  if (row === undefined) throw new Unavailable('the object storage')
  if (!isNew) await whileBeingMade(parts, row)
  const stores = await whileTelling(
    parts,
    row,
    async (_turn, current) => {
      // It has been disabled meanwhile.
      if (current === undefined) throw new Unavailable('the object storage')
      return bringUp(parts, current)
    },
    () => {
      throw new Unavailable('the object storage, while others change it')
    },
  )
  // The answer shows the key, regardless of who has enabled the storage.
  if (!isNew)
    await parts.db
      .transaction()
      .execute((tx) => appendAudit(tx, auditEntryOf(call, { resourceId: row.id, detail: { name: zone } }), parts))
  return answerOf(parts, stores)
}

const hasObject = async ({ store }: Parts, { accountId, id }: ObjectStorageRow): Promise<boolean> =>
  (await store.get(ObjectStorage, { namespace: accountNamespace(accountId), name: id })) !== undefined

/** Waits while the faster request, which has claimed it, creates the object; one that died in between never will. */
async function whileBeingMade(parts: Parts, row: ObjectStorageRow): Promise<void> {
  const end = parts.clock.monotonicMilliseconds() + MAKING_MILLISECONDS
  while (!(await hasObject(parts, row)) && parts.clock.monotonicMilliseconds() < end)
    await parts.clock.sleep(LOOK_MILLISECONDS)
}

/** False when another request was faster. */
async function claim(
  parts: ObjectStorageParts,
  call: Call<typeof enableObjectStorage, Customer>,
  { backend, createdAt }: Pick<NewObjectStorage, 'backend' | 'createdAt'>,
): Promise<boolean> {
  const {
    caller: { accountId },
    body: { zone },
  } = call
  const { secretAccessKey, ...keys } = newTenantKeys(parts.random)
  const id = newOrderedUuid(parts.random, createdAt)
  const sealedSecret = parts.sealing.seal(secretAccessKey, objectStorageOwner(accountId, id))
  const row: NewObjectStorage = { ...keys, id, accountId, zone, sealedSecret, backend, createdAt }
  try {
    await createObject(parts, accountId, {
      changeId: newUuid(parts.random),
      reference: { type: 'object_storage', id },
      resource: ObjectStorage,
      audit: auditEntryOf(call, { resourceId: id, detail: { name: zone } }),
      specOf: () => ({ zone }),
      claim: (tx) => addObjectStorage(tx, row),
      release: async (tx) => void (await removeObjectStorage(tx, row)),
    })
    return true
  } catch (error) {
    if (error instanceof Problem && error.members.reason === 'name_taken') return false
    throw error
  }
}

async function rotate(
  parts: ObjectStorageParts,
  call: Call<typeof rotateObjectStorageKeys, Customer>,
): Promise<object> {
  const {
    caller: { accountId },
    params: { zone },
  } = call
  const before = await findIn(parts, accountId, zone)
  requireServed(parts, zone, before.backend)
  requireSealing(parts)
  const sealedSecret = parts.sealing.seal(newSecret(parts.random), objectStorageOwner(accountId, before.id))
  // The store gets the key before the row is committed: a secret that the store does not accept is never returned, and
  // if the row is not committed, the controller undoes the change in the store.
  const row = await whileTelling(
    parts,
    before,
    async (turn, current) => {
      await bringUp(parts, { ...requireRow(current), sealedSecret })
      return parts.db.transaction().execute(async (tx) => {
        await turn.require(tx)
        const replaced = requireRow(await replaceObjectStorageSecret(tx, before, sealedSecret))
        await appendAudit(tx, auditEntryOf(call, { resourceId: replaced.id }), parts)
        return replaced
      })
    },
    () => {
      throw new Unavailable('the object storage, while others change it')
    },
  )
  return answerOf(parts, row)
}

/** The controller does it. Throws 409 for a tenant that has moved, is moving or cannot be moved, and 503 where it
 *  cannot move. */
async function migrate(parts: ObjectStorageParts, call: Call<typeof migrateObjectStorage, Customer>): Promise<object> {
  const {
    caller: { accountId },
    params: { zone },
  } = call
  const row = await findIn(parts, accountId, zone)
  if (row.backend === 'rgw') throw conflict('state_not_allowed', 'The object storage is replicated.')
  const single = requireServed(parts, zone, row.backend)
  const offer = offerIn(parts.objectStorage ?? NOWHERE, zone, 'rgw')
  if ('obstacle' in offer)
    throw zoneLacks('replicated_storage', `Zone ${zone} has no replicated object storage to move to.`)
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = credentialsOf(parts, row)
  const obstacle = await moveObstacle(single.openS3(zone, { accessKeyId, secretAccessKey })).catch((error: unknown) => {
    throw new Unavailable('the object storage', error)
  })
  if (obstacle !== undefined) throw conflict('state_not_allowed', obstacle)
  const verb: Verb<unknown, IdleFacts> = {
    kind: 'object_storage.migrate',
    validate: (facts) => requireIdle('object_storage', facts),
    spec: {},
  }
  const operation = await begin(parts, parts.objectStorages, call, verb, row.id)
  const [view] = await viewsOf(parts, [row])
  return { object_storage: view, operation }
}

/** Writes the row's state to the store, one write after another. Throws Unavailable for a row without an object: while
 *  such a tenant is half created or half deleted, its row is released, and nobody would ever remove from the store what
 *  was written there. */
async function bringUp(parts: ObjectStorageParts, row: ObjectStorageRow): Promise<ObjectStorageRow> {
  if (!(await hasObject(parts, row))) throw new Unavailable('the object storage')
  const facts = await tenantFacts(parts.db, row, parts.clock.now())
  const { secret_access_key: secretAccessKey } = credentialsOf(parts, row)
  await sendTenantSettings(requireTold(parts, row), tenantOf(row), { ...facts, secretAccessKey })
  return row
}

async function answerOf(parts: ObjectStorageParts, row: ObjectStorageRow): Promise<object> {
  const [view] = await viewsOf(parts, [row])
  return { object_storage: view, credentials: credentialsOf(parts, row) }
}

/** Clients connect to the entrance; the durability is that of the keeper. */
const reachOf = ({ keeper, entrance }: TenantStores, zone: string): ObjectStorageReach => ({
  endpoint: entrance.endpointOf(zone),
  certificateAuthority: entrance.certificateAuthority,
  durability: keeper.durability,
})

/** All rows must be of one account. */
async function viewsOf(
  { db, objectStorage = NOWHERE, clock }: Parts,
  rows: readonly ObjectStorageRow[],
): Promise<readonly ObjectStorageView[]> {
  const [first] = rows
  if (first === undefined) return []
  const quotaBytes = await objectStorageQuotaBytes(db, first.accountId)
  return rows.map((row) => {
    const stores = tenantStoresOf(objectStorage, row, clock.now())
    return toObjectStorageView({ ...row, quotaBytes }, 'obstacle' in stores ? UNREACHABLE : reachOf(stores, row.zone))
  })
}
