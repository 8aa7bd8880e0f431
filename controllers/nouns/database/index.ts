/** The database controller: its watches, what it reads, and its effects. `plan.ts` decides. */
import { heldUntil } from '../../../domain/database/rules.ts'
import { Unavailable } from '../../../domain/problem.ts'
import {
  claimDatabase,
  ensureAuthority,
  findArchive,
  findDatabase,
  holdArchive,
  keepServerCertificate,
  newSealedPassword,
  newServerCertificate,
  openPassword,
  openServerKey,
  releaseDatabase,
  renameDatabase,
  retireArchive,
} from '../../../db/database/index.ts'
import { wasRemovalOrderedByName } from '../../../db/removal/index.ts'
import { findStorageClaim } from '../../../db/storage/index.ts'
import { watchNamed } from '../../../kit/reconcile/watch-named.ts'
import { DAY_MILLISECONDS } from '../../../kit/sys/certificate.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { Database, type DatabaseSpec, type DatabaseStatus } from '../../../resources/database/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Network } from '../../../resources/network/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import {
  deliverDocument,
  findLostMachines,
  MACHINE_READS,
  MACHINE_WRITES,
  type Machines,
  openMachines,
} from '../managed-machine/index.ts'
import { detectLife } from '../../kit/made-plan.ts'
import { requireNewest } from '../../kit/newest.ts'
import { findEditor, requesterOf } from '../../kit/operation/direct-edit.ts'
import { wasOperationApplied } from '../../kit/operation/intent.ts'
import type { Parts } from '../../kit/parts.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { requireStandingOfEdit } from '../../kit/standing.ts'
import { editsOf, newRequests } from '../../kit/synced.ts'
import { archiveObstacleIn, observeArchive, openArchive, repositoryOf } from './archive.ts'
import { beginExchange, spareDisksOf } from './disk-exchange.ts'
import { dataStorageName, databaseDocument, isToRestore } from './machine.ts'
import { CLAIMED, type DatabaseEffects, type DatabaseObject, type Observed } from './observed.ts'
import { LIFE, plan } from './plan.ts'

export { openDatabaseMetrics } from './metrics.ts'

/** Parts besides those of every controller. */
interface SecretAccess {
  /** Opens passwords and keys; no database is created without it. */
  readonly sealing?: Sealing
}

export { runArchiveSweeper, sweepArchives } from './archive.ts'

export const databaseController = controller<DatabaseEffects>()({
  name: 'database',
  resource: Database,
  sharding: 'by-zone',
  finalizer: finalizerOf(Database),
  intent: {
    resourceType: 'database',
    wasApplied: wasOperationApplied(Database),
    /** Its controller releases a new name, and a new password stays in force. */
    async release(tx, { accountId, resource, audit: { action } }) {
      if (action === 'database.create' || action === 'database.restore')
        await releaseDatabase(tx, { accountId, databaseId: resource.id })
    },
  },
  plan,
  reads: [Network, ...MACHINE_READS.filter((kind) => kind !== Storage)],
  // A database whose operation is its deletion is deleted here.
  writes: [...MACHINE_WRITES, Storage, Database],
  open(parts: Parts & SecretAccess) {
    const machines = openMachines(parts, 'database')
    const databases = parts.caches.of(Database)
    return {
      watches: [
        watchNamed(databases, Network, ({ spec }) => spec.networkId),
        watchNamed(databases, Storage, dataStorageName),
        ...machines.watches,
      ],
      observe: (database) => observe(parts, machines, database),
      effects: effectsOf(parts),
    }
  },
})

async function observe(parts: Parts & SecretAccess, machines: Machines, database: DatabaseObject): Promise<Observed> {
  const { db, caches, store } = parts
  const { namespace = '', name: databaseId } = database.metadata
  const accountId = await findAccountOf(db, namespace)
  const requests = await newRequests(db, database)
  const edit = detectLife(database, LIFE)
  const editor =
    edit === undefined ? '' : (requesterOf(requests, edit) ?? (await findEditor(store, Database, database, '')))
  const storage = caches.of(Storage).get({ namespace, name: dataStorageName(database) })
  return {
    accountId,
    claim: accountId === undefined ? undefined : await orUnavailable(findDatabase(db, { accountId, databaseId })),
    networks: networksOf(parts, database),
    machines: machines.observe({ namespace, id: databaseId }),
    lost: await findLostMachines(parts, { type: 'database', namespace, id: databaseId, accountId }),
    ...(await archivesOf(parts, accountId, database)),
    archiveObstacle: archiveObstacleIn(parts, database.spec.zone),
    storage,
    missingStorage: storage === undefined ? await missingStorageOf(parts, accountId, database) : undefined,
    spareDisks: await spareDisksOf(parts, { namespace, uid: database.metadata.uid ?? '' }),
    edits: editsOf(requests),
    editor,
  }
}

/** The name of the storage is used once: an order for that name is for it. */
async function missingStorageOf(
  { db }: Parts,
  accountId: string | undefined,
  database: DatabaseObject,
): Promise<Observed['missingStorage']> {
  const name = dataStorageName(database)
  const key = { namespace: database.metadata.namespace ?? '', name }
  const claim =
    accountId === undefined ? undefined : await orUnavailable(findStorageClaim(db, { accountId, storageId: name }))
  if (database.status?.isMade !== true && claim === undefined) return undefined
  return (await orUnavailable(wasRemovalOrderedByName(db, { kind: Storage.kind, ...key }))) ? 'removed' : 'lost'
}

/** Its own archive, and that of the database that it is restored from. */
async function archivesOf(
  parts: Parts & SecretAccess,
  accountId: string | undefined,
  database: DatabaseObject,
): Promise<Pick<Observed, 'archive' | 'origin'>> {
  const { metadata, spec } = database
  if (accountId === undefined || parts.sealing?.isAvailable !== true) return { archive: undefined, origin: undefined }
  const whole = { ...parts, sealing: parts.sealing }
  const archive = await observeArchive(whole, { accountId, databaseId: metadata.name }, spec)
  const from = isToRestore(database) ? spec.restoredFrom : undefined
  const origin = from && (await orUnavailable(findArchive(parts.db, { accountId, databaseId: from.databaseId })))
  return { archive, origin }
}

function networksOf({ caches }: Parts, { metadata, spec }: DatabaseObject): readonly string[] | undefined {
  const { namespace = '' } = metadata
  const { ipv4Cidr, ipv6Prefix } = caches.of(Network).get({ namespace, name: spec.networkId })?.status ?? {}
  return ipv4Cidr === undefined ? undefined : [ipv4Cidr, ...(ipv6Prefix === undefined ? [] : [ipv6Prefix])]
}

/** Throws Unavailable where nothing can be sealed or opened. */
function sealingOf({ sealing }: SecretAccess): Sealing {
  if (sealing?.isAvailable !== true) throw new Unavailable('the sealing key of databases')
  return sealing
}

/** A claim for a database that is deleted meanwhile would never be released. */
const effectsOf = (parts: Parts & SecretAccess): EffectsOn<DatabaseEffects, DatabaseSpec, DatabaseStatus> => ({
  claim: withRefusalCondition(CLAIMED, async (demand, database) => {
    await requireNewest(parts.store, Database, database)
    await requireStandingOfEdit(parts, database, demand.accountId)
    const now = parts.clock.now()
    const secrets = { sealing: sealingOf(parts), random: parts.random, now }
    await orUnavailable(ensureAuthority(parts.db, secrets))
    const { originId, ...claim } = demand
    const whole = { ...claim, sealedPassword: newSealedPassword(secrets, demand) }
    await orUnavailable(
      parts.db.transaction().execute(async (tx) => {
        await claimDatabase(tx, whole, 'spec.networkId')
        if (originId === undefined) return
        await holdArchive(tx, { accountId: demand.accountId, databaseId: originId }, heldUntil(now))
      }),
    )
    return grantedCondition(CLAIMED)
  }),
  rename: withRefusalCondition(CLAIMED, async ({ name, ...id }) => {
    await orUnavailable(parts.db.transaction().execute((tx) => renameDatabase(tx, id, name)))
    return grantedCondition(CLAIMED)
  }),
  async certify(input) {
    const secrets = { sealing: sealingOf(parts), random: parts.random, now: parts.clock.now() }
    const certificate = await orUnavailable(newServerCertificate(parts.db, secrets, input))
    await orUnavailable(keepServerCertificate(parts.db, input, certificate))
    return undefined
  },
  async deliver(delivery, database) {
    const { namespace = '', name: databaseId } = database.metadata
    const accountId = await findAccountOf(parts.db, namespace)
    if (accountId === undefined) return undefined
    const id = { accountId, databaseId }
    const claim = await orUnavailable(findDatabase(parts.db, id))
    // A newer configuration gets its own number in the next reconcile.
    if (claim?.certificate === undefined || claim.generation !== delivery.generation) return undefined
    const secrets = { sealing: sealingOf(parts) }
    const whole = { ...parts, ...secrets }
    const { archive, origin } = await archivesOf(whole, accountId, database)
    const document = databaseDocument(
      database,
      { claim, networks: networksOf(parts, database) },
      {
        password: openPassword(secrets, id, claim.sealedPassword),
        key: openServerKey(secrets, id, claim.certificate.sealedKey),
        archive: archive?.row && repositoryOf(whole, archive.row),
        origin: origin && repositoryOf(whole, origin),
      },
    )
    if (document === undefined) throw new Unavailable('the network of the database')
    await deliverDocument(parts, delivery, document)
    return undefined
  },
  async archive({ zone, storageGibibytes, ...id }) {
    await openArchive({ ...parts, sealing: sealingOf(parts) }, id, { zone, storageGibibytes })
    return undefined
  },
  async upgrade({ serverId, imageVersion }, { metadata: { namespace = '' } }) {
    await beginExchange(parts, { namespace, name: serverId }, imageVersion)
    return undefined
  },
  async release(left) {
    await release(parts, left)
    return undefined
  },
  audit: auditEffect(parts),
})

/** Its archive stays for as long as was recorded. */
async function release({ db, clock }: Parts, left: DatabaseEffects['release']): Promise<void> {
  const { origin, keptDays, ...id } = left
  const until = new Date(clock.now().getTime() + keptDays * DAY_MILLISECONDS)
  await orUnavailable(
    db.transaction().execute(async (tx) => {
      await retireArchive(tx, id, { origin, until })
      await releaseDatabase(tx, id)
    }),
  )
}
