/** Databases that people create, change and delete past the API must satisfy its rules. Everything is checked and
 *  nothing is claimed: the controller claims, once the object exists. */
import {
  dailyScheduleFault,
  identifierFault,
  requireChangeableDatabase,
  requireDeletableDatabase,
} from '../../../domain/database/rules.ts'
import { badField, forbidden } from '../../../domain/problem.ts'
import { claimDatabase, renameDatabase } from '../../../db/database/index.ts'
import { Plan, Template, Zone } from '../../../resources/catalog/index.ts'
import { Database, databaseFactsOf, type DatabaseSpec, type DatabaseStatus } from '../../../resources/database/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { admitDeletion, requireAccount, requireStanding } from '../../kit/admission/account-objects.ts'
import {
  type AdmissionParts,
  type AdmissionRules,
  type AdmittedChange,
  editedFields,
} from '../../kit/admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import { requireReadable } from '../../../changes/kit/readable.ts'
import { PrintableName } from '../../../resources/kit/shapes.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { OBJECT_FIELDS, requireRestorable, restoreOf } from './archive.ts'
import type { DatabaseObject } from './objects.ts'
import { rehearseDatabase, requireDatabases } from './rules.ts'
import { WORDS } from '../../kit/words.ts'

const PLATFORM: PlatformFields = {
  noun: 'database',
  finalizer: finalizerOf(Database),
  goesWhen: 'nothing of the database is left',
}

/** Throws 403 for fields that only the platform writes, and 400 for invalid ones. */
function requireReadableFields(database: DatabaseObject, before?: DatabaseObject): void {
  denyPlatformFields(database, before, PLATFORM)
  const { spec } = database
  if (spec.passwordGeneration !== (before?.spec.passwordGeneration ?? 1))
    throw forbidden('spec.passwordGeneration is written by the platform only.')
  requireReadable('spec.name', PrintableName, spec.name)
  for (const [field, fault] of [
    ['databaseName', identifierFault(spec.databaseName)],
    ['ownerName', identifierFault(spec.ownerName)],
    ['backupSchedule', dailyScheduleFault(spec.backupSchedule)],
  ] as const)
    if (fault !== undefined) throw badField(`spec.${field}`, fault)
}

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, database: DatabaseObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: databaseId, namespace = '' },
    spec,
  } = database
  const accountId = await requireAccount(parts, database, 'databases')
  requireReadableFields(database)
  const restored = restoreOf(accountId, database)
  if (restored !== undefined) {
    const { databaseName, ownerName } = await requireRestorable(parts, restored, OBJECT_FIELDS)
    if (spec.databaseName !== databaseName)
      throw badField('spec.databaseName', `must be ${databaseName}, as the origin has`)
    if (spec.ownerName !== ownerName) throw badField('spec.ownerName', `must be ${ownerName}, as the origin has`)
  }
  requireDatabases(parts, spec.zone, 'spec.zone')
  await requireStanding(parts, accountId)
  // The network of the same manifest may be created later: the database waits for it.
  if (parts.caches.of(Network).get({ namespace, name: spec.networkId })?.status?.ipv4Cidr !== undefined) {
    const demand = { accountId, databaseId, ...spec, sealedPassword: '' }
    await rehearse(parts, (tx) => claimDatabase(tx, demand, 'spec.networkId'))
  }
  await rehearseDatabase(parts, WORDS.kubectl, accountId, spec)
  return [{ action: restored === undefined ? 'database.create' : 'database.restore', changes: [] }]
}

/** Throws the Problem that the API would answer. */
async function validateChange(
  parts: AdmissionParts,
  database: DatabaseObject,
  before: DatabaseObject,
): Promise<readonly AdmittedChange[]> {
  requireReadableFields(database, before)
  const { metadata, spec } = database
  const changes = editedFields(['name', 'backupSchedule', 'backupRetentionDays', 'isProtected'], spec, before.spec)
  if (changes.length === 0) return []
  requireChangeableDatabase(databaseFactsOf(storedOf(before)))
  const accountId = accountOfNamespace(metadata.namespace ?? '')
  if (spec.name !== before.spec.name && accountId !== undefined)
    await rehearse(parts, (tx) => renameDatabase(tx, { accountId, databaseId: metadata.name }, spec.name))
  return [{ action: 'database.update', changes }]
}

export const databaseAdmission: AdmissionRules<DatabaseSpec, DatabaseStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: admitDeletion('database.delete', (before) => requireDeletableDatabase(databaseFactsOf(storedOf(before)))),
  actionsOf: (after, before) =>
    before === undefined && after?.spec.restoredFrom !== undefined ? ['database.restore'] : [],
  reads: [Zone, Network, Plan, Template, Database],
}
