/** Creating, reading, changing and deleting managed databases, and the passwords of their owners. */
import type { AuditChange } from '../../../domain/audit/entry.ts'
import {
  heldUntil,
  requireChangeableDatabase,
  requireDeletableDatabase,
  requireMadeDatabase,
} from '../../../domain/database/rules.ts'
import { defined } from '../../../domain/defined.ts'
import { conflict, notFound, unavailable } from '../../../domain/problem.ts'
import {
  claimDatabase,
  ensureAuthority,
  findAuthority,
  findDatabase,
  holdArchive,
  newSealedPassword,
  releaseDatabase,
  renameDatabase,
  replacePassword,
} from '../../../db/database/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { Route } from '../../../kit/http/route.ts'
import { isDryRun } from '../../../kit/sys/dry-run.ts'
import {
  createDatabase,
  Database,
  type DatabaseSpec,
  deleteDatabase,
  getDatabase,
  getDatabaseCredentials,
  listDatabaseBackups,
  listDatabases,
  restoreDatabase,
  rotateDatabaseCredentials,
  toBackupsView,
  type UpdateDatabase,
  updateDatabase,
} from '../../../resources/database/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { create } from '../../kit/change/create.ts'
import { operate } from '../../kit/change/operate.ts'
import { changeObject } from '../../kit/plain/change-object.ts'
import { etagOfObject } from '../../kit/plain/objects.ts'
import { findRestorable, requireRestorable } from './archive.ts'
import { credentialsOf, type DatabaseParts, requireDatabaseSealing } from './credentials.ts'
import type { DatabaseObject } from './objects.ts'
import { refuseZoneRedundancy, rehearseDatabase, requireDatabases, requireNetwork } from './rules.ts'

export type { DatabaseParts } from './credentials.ts'
import { WORDS } from '../../kit/words.ts'

/** A list is complete, because an account has few. */
const LIST_MAXIMUM = 1_000
const ROTATE_SECONDS = 45
const LOOK_MILLISECONDS = 250

export const databaseEndpoints = (parts: DatabaseParts): readonly Endpoint[] => [
  customerEndpoint(listDatabases, async ({ caller: { accountId } }) => {
    await parts.databases.catchUp(accountId)
    const items = parts.databases.page(accountId, {}, undefined, LIST_MAXIMUM).map(parts.databases.viewOf)
    return { status: 200, body: { items, next_cursor: null } }
  }),
  customerEndpoint(getDatabase, (call) => read(parts, call)),
  customerEndpoint(createDatabase, (call) => createEndpoint(parts, call)),
  customerEndpoint(updateDatabase, (call) => update(parts, call)),
  customerEndpoint(deleteDatabase, (call) => remove(parts, call)),
  customerEndpoint(restoreDatabase, (call) => restore(parts, call)),
  customerEndpoint(listDatabaseBackups, async ({ caller: { accountId }, params: { id } }) => {
    await parts.databases.catchUp(accountId)
    return { status: 200, body: toBackupsView((await findRestorable(parts, accountId, id)).backups) }
  }),
  customerEndpoint(getDatabaseCredentials, (call) => readCredentials(parts, call)),
  customerEndpoint(rotateDatabaseCredentials, (call) => rotate(parts, call)),
]

async function read(parts: DatabaseParts, call: Call<typeof getDatabase, Customer>): Promise<Answer> {
  const database = await parts.databases.read(call.caller.accountId, call.params.id)
  const authority = await findAuthority(parts.db)
  const body = { database: { ...parts.databases.viewOf(database), ca_certificate: authority ?? null } }
  return { status: 200, body, headers: { etag: etagOfObject(database) } }
}

async function createEndpoint(parts: DatabaseParts, call: Call<typeof createDatabase, Customer>): Promise<Answer> {
  const { zone, name, network_id: networkId, database_name: databaseName, plan, storage_gibibytes, ...body } = call.body
  requireDatabases(parts, zone)
  if (body.zone_redundant) refuseZoneRedundancy(parts, zone)
  const ownerName = body.owner_name ?? databaseName
  const storageGibibytes = storage_gibibytes
  const isProtected = body.is_protected
  return make(parts, call, { zone, name, networkId, plan, databaseName, ownerName, storageGibibytes, isProtected })
}

async function restore(parts: DatabaseParts, call: Call<typeof restoreDatabase, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: databaseId },
    body: { name, target_time: targetTime, ...body },
  } = call
  await parts.databases.catchUp(accountId)
  const demand = { accountId, databaseId, targetTime }
  const storage = body.storage_gibibytes === undefined ? {} : { storageGibibytes: body.storage_gibibytes }
  const origin = await requireRestorable(parts, { ...demand, ...storage })
  const { zone, databaseName, ownerName } = origin
  requireDatabases(parts, zone)
  return make(parts, call, {
    zone,
    name,
    databaseName,
    ownerName,
    networkId: body.network_id ?? origin.networkId,
    plan: body.plan ?? origin.plan,
    storageGibibytes: body.storage_gibibytes ?? origin.storageGibibytes,
    isProtected: body.is_protected,
    restoredFrom: { databaseId, ...(targetTime === null ? {} : { targetTime }) },
  })
}

type DatabaseDraft = Pick<
  DatabaseSpec,
  | 'zone'
  | 'name'
  | 'networkId'
  | 'plan'
  | 'storageGibibytes'
  | 'databaseName'
  | 'ownerName'
  | 'restoredFrom'
  | 'isProtected'
>

/** Answers 202 with the new database, its operation and the credentials of its owner. */
async function make<R extends Route>(
  parts: DatabaseParts,
  call: Call<R, Customer>,
  wanted: DatabaseDraft,
): Promise<Answer> {
  const {
    caller: { accountId },
    now,
  } = call
  const { zone, name, networkId, plan, restoredFrom } = wanted
  requireDatabaseSealing(parts)
  requireNetwork(parts, accountId, networkId)
  await rehearseDatabase(parts, WORDS.rest, accountId, wanted)
  await ensureAuthority(parts.db, { ...parts, now })
  const result: { id?: string } = {}
  const answer = await create(parts, parts.databases, call, {
    kind: restoredFrom === undefined ? 'database.create' : 'database.restore',
    detail: {
      zone,
      name,
      network_id: networkId,
      plan,
      ...defined({ database_id: restoredFrom?.databaseId, target_time: restoredFrom?.targetTime }),
    },
    claim: async (tx, databaseId) => {
      result.id = databaseId
      const id = { accountId, databaseId }
      await claimDatabase(tx, { ...id, zone, name, networkId, sealedPassword: newSealedPassword(parts, id) })
      if (restoredFrom !== undefined)
        await holdArchive(tx, { accountId, databaseId: restoredFrom.databaseId }, heldUntil(now))
    },
    release: (tx, databaseId) => releaseDatabase(tx, { accountId, databaseId }),
    specOf: (operation): DatabaseSpec => ({ ...Database.spec.parse(wanted), operation }),
  })
  if (isDryRun()) return answer
  const database = await parts.databases.read(accountId, result.id ?? '')
  const credentials = await credentialsOf(parts, accountId, database)
  const begun = 'body' in answer ? (answer.body as object) : {} // the database and the operation
  return { status: 202, body: { ...begun, credentials } }
}

async function update(parts: DatabaseParts, call: Call<typeof updateDatabase, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: databaseId },
    body,
  } = call
  const { databases } = parts
  const { spec } = await databases.read(accountId, databaseId)
  const id = { accountId, databaseId }
  const { name } = body
  const written = await changeObject(parts, databases, call, {
    changes: (database) => changesOf(database.spec, body),
    patch: (database) => {
      requireChangeableDatabase(databases.factsOf(database))
      return patchOf(body)
    },
    ...(name === undefined || name === spec.name
      ? {}
      : {
          claim: (tx) => renameDatabase(tx, id, name),
          release: (tx) => renameDatabase(tx, id, spec.name),
        }),
  })
  return answerOf(parts, written)
}

const answerOf = ({ databases }: DatabaseParts, database: DatabaseObject): Answer => ({
  status: 200,
  body: { database: databases.viewOf(database) },
  headers: { etag: etagOfObject(database) },
})

const patchOf = ({ name, backup_schedule, backup_retention_days, is_protected }: UpdateDatabase) =>
  defined({
    name,
    backupSchedule: backup_schedule,
    backupRetentionDays: backup_retention_days,
    isProtected: is_protected,
  })

const changesOf = (spec: DatabaseSpec, body: UpdateDatabase): readonly AuditChange[] =>
  (
    [
      ['name', spec.name, body.name],
      ['backup_schedule', spec.backupSchedule, body.backup_schedule],
      ['backup_retention_days', spec.backupRetentionDays, body.backup_retention_days],
      ['is_protected', spec.isProtected, body.is_protected],
    ] as const
  ).flatMap(([field, before, after]) => (after === undefined || before === after ? [] : [{ field, before, after }]))

const remove = (parts: DatabaseParts, call: Call<typeof deleteDatabase, Customer>): Promise<Answer> =>
  operate(parts, parts.databases, call, {
    kind: 'database.delete',
    arguments: { keepBackupsDays: String(call.query.keep_backups_days) },
    validate: requireDeletableDatabase,
    spec: {},
  })

async function readCredentials(
  parts: DatabaseParts,
  call: Call<typeof getDatabaseCredentials, Customer>,
): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id },
  } = call
  const database = await parts.databases.read(accountId, id)
  requireMadeDatabase(parts.databases.factsOf(database))
  const credentials = await credentialsOf(parts, accountId, database)
  await parts.db.transaction().execute((tx) => appendAudit(tx, auditEntryOf(call, { resourceId: id }), parts))
  return { status: 200, body: { credentials } }
}

/** One accepted change writes the new password into the row and its number into the spec. Then this waits for the
 *  machine. Throws 503 when the machine does not confirm in time that it refuses the old password; the new one is valid
 *  all the same. */
async function rotate(parts: DatabaseParts, call: Call<typeof rotateDatabaseCredentials, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: databaseId },
  } = call
  const { databases } = parts
  requireDatabaseSealing(parts)
  const id = { accountId, databaseId }
  requireMadeDatabase(databases.factsOf(await databases.read(accountId, databaseId)))
  // The row is authoritative, not the spec: after a rotation that died in between, the row has the password.
  const before = (await findDatabase(parts.db, id))?.passwordGeneration
  if (before === undefined) throw notFound('database')
  const written = await changeObject(parts, databases, call, {
    changes: () => [],
    patch: (database) => {
      requireMadeDatabase(databases.factsOf(database))
      return { passwordGeneration: before + 1 }
    },
    claim: async (tx) => {
      const replaced = await replacePassword(tx, id, { sealedPassword: newSealedPassword(parts, id), before })
      if (replaced === undefined)
        throw conflict('state_not_allowed', 'The password is being replaced by another request.', {
          resource: { type: 'database', id: databaseId },
        })
    },
  })
  const database = await confirmed(parts, accountId, written)
  const credentials = await credentialsOf(parts, accountId, database)
  return { status: 200, body: { database: databases.viewOf(database), credentials } }
}

/** Throws 503 when its machine does not apply the password in time. */
async function confirmed(
  { databases, clock }: DatabaseParts,
  accountId: string,
  { metadata: { name }, spec: { passwordGeneration } }: DatabaseObject,
): Promise<DatabaseObject> {
  const end = clock.monotonicMilliseconds() + ROTATE_SECONDS * 1_000
  while (clock.monotonicMilliseconds() < end) {
    const database = databases.find(accountId, name)
    if (database !== undefined && (database.status?.passwordGeneration ?? 0) >= passwordGeneration) return database
    await clock.sleep(LOOK_MILLISECONDS)
  }
  throw unavailable(
    'host_unreachable',
    'The machine of the database has not taken the new password yet. It will, and then refuse the old one: read the ' +
      'credentials.',
  )
}
