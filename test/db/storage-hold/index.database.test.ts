/** A snapshot and the end of the disk that it is in, accepted in the same instant: of the two, one wins. */
import type { Transaction } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { begin } from '../../../db/kit/begin.ts'
import { recordIntent } from '../../../db/change/index.ts'
import { mirrorNode } from '../../../db/placement/index.ts'
import { claimServer } from '../../../db/server/index.ts'
import { claimSnapshot, holdForSafety, releaseSnapshot } from '../../../db/snapshot/index.ts'
import { attachStorage, claimStorage, landStorage, requireEndable } from '../../../db/storage/index.ts'
import { listHeldOnHosts, readHolds, requireNoBootHolds, requireMovable } from '../../../db/storage-hold/index.ts'
import type { Tables } from '../../../db/tables.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { until } from '../../eventually.ts'
import { lockWaits } from '../../lock-waits.ts'

const database = useDatabase()
const now = new Date('2026-01-01T00:00:00Z')
const ZONE = 'zone-1'
type Work = (tx: Transaction<Tables>) => Promise<unknown>

let accountId: string
let id: string

beforeEach(async () => {
  accountId = await createAccount(database.db)
  id = newUuid(systemRandom)
  await mirrorNode(database.db, {
    node: 'n1',
    zone: ZONE,
    rack: 'rack-1',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 64, memoryMebibytes: 65_536, storageGibibytes: 100 },
  })
})

/** The claim of what ends the disk, as a request makes it: with its intent. */
const ending =
  (type: 'server' | 'storage', action: string): Work =>
  async (tx) => {
    await (type === 'server'
      ? requireNoBootHolds(tx, { accountId, serverId: id })
      : requireEndable(tx, { accountId, storageId: id }))
    const audit = {
      accountId,
      actor: 'user:1',
      action,
      outcome: 'success',
      resourceType: type,
      resourceId: id,
      at: now,
    }
    const intent = { operationId: newUuid(systemRandom), accountId, resource: { type, id }, createdAt: now }
    await recordIntent(tx, { ...intent, audit: audit as unknown as Parameters<typeof recordIntent>[1]['audit'] })
  }
const snapshot =
  (type: 'server' | 'storage'): Work =>
  (tx) => {
    const boot = type === 'server' ? id : undefined
    return claimSnapshot(tx, {
      accountId,
      snapshotId: 's1',
      storageId: id,
      bootServerId: boot,
      isShared: false,
      sizeGibibytes: 10,
    })
  }

/** Both at once: the second begins while the first is not committed yet. Answers why the second was refused. */
async function race(first: Work, second: Work): Promise<string> {
  const begun = await begin(database.db)
  await first(begun.tx)
  let isOver = false
  const later = database.db
    .transaction()
    .execute(second)
    .then(
      () => 'accepted',
      (error: unknown) => String((error as { members?: { reason?: string } }).members?.reason ?? error),
    )
    .finally(() => void (isOver = true))
  // Whatever it reads before it is kept waiting it has read by then.
  await until(
    'the second to wait or to end',
    () => lockWaits(database.db),
    (waiting) => isOver || waiting > 0,
  )
  await begun.commit()
  return later
}

const place: Record<'server' | 'storage', Work> = {
  server: (tx) =>
    claimServer(
      tx,
      {
        accountId,
        serverId: id,
        hostname: `h-${id}`,
        zone: ZONE,
        cores: 1,
        memoryMebibytes: 512,
        storageGibibytes: 1,
      },
      { now, random: systemRandom },
    ),
  storage: (tx) => claimStorage(tx, { accountId, storageId: id, zone: ZONE, sizeGibibytes: 1 }, now),
}

test.each([
  ['server', 'server.delete'],
  ['server', 'server.rebuild'],
  ['storage', 'storage.delete'],
] as const)('of a %s: %s and a snapshot', async (type, action) => {
  await database.db.transaction().execute(place[type])
  expect(await race(ending(type, action), snapshot(type))).toBe('state_not_allowed')
  await database.db.deleteFrom('change_intent').execute()
  expect(await race(snapshot(type), ending(type, action))).toBe('in_use')
})

test('a snapshot that was taken before a restore keeps the data in their place, and not from their end', async () => {
  const hold = {
    accountId,
    snapshotId: 's1',
    storageId: id,
    bootServerId: undefined,
    isShared: false,
    sizeGibibytes: 10,
  }
  const transact = (work: Work) => database.db.transaction().execute(work)
  await transact(place.storage)
  await transact((tx) => holdForSafety(tx, hold))
  expect(await readHolds(database.db, { accountId, storageId: id })).toEqual({
    isKept: false,
    isInPlace: true,
    isOnHost: true,
  })
  const resource = { accountId, storageId: id }
  await expect(requireMovable(database.db, resource, { staysShared: true })).rejects.toMatchObject({
    members: { reason: 'in_use' },
  })
  await transact(ending('storage', 'storage.delete'))
  await transact((tx) => releaseSnapshot(tx, { accountId, snapshotId: 's1' }))
  expect(await readHolds(database.db, resource)).toEqual({
    isKept: false,
    isInPlace: false,
    isOnHost: false,
  })

  id = newUuid(systemRandom)
  await transact(place.server)
  await transact((tx) => holdForSafety(tx, { ...hold, storageId: id, bootServerId: id }))
  await transact(ending('server', 'server.delete'))
})

test('what holds data on a host is listed with the server that has it', async () => {
  const transact = (work: Work) => database.db.transaction().execute(work)
  const hold = (snapshotId: string, more: object) => (tx: Transaction<Tables>) =>
    claimSnapshot(tx, {
      accountId,
      snapshotId,
      storageId: id,
      bootServerId: undefined,
      isShared: false,
      sizeGibibytes: 10,
      ...more,
    })
  const held = () => listHeldOnHosts(database.db, [accountId])
  await transact(place.storage)
  await transact(hold('s1', {}))
  expect(await held()).toEqual([{ accountId, storageId: id, serverId: undefined }])
  const storageId = id
  const serverId = newUuid(systemRandom)
  id = serverId
  await transact(place.server)
  await transact((tx) => attachStorage(tx, { accountId, storageId, serverId, volume: 'uid' }))
  expect(await held()).toEqual([{ accountId, storageId, serverId }])
  await transact((tx) => landStorage(tx, { accountId, storageId, serverId, node: 'n1' }))
  await transact((tx) => releaseSnapshot(tx, { accountId, snapshotId: 's1' }))
  await transact(hold('s2', { storageId, isShared: true }))
  await transact(hold('s3', { bootServerId: serverId }))
  expect(await held()).toEqual([{ accountId, storageId: serverId, serverId }])
  expect(await listHeldOnHosts(database.db, [newUuid(systemRandom)])).toEqual([])
  expect(await listHeldOnHosts(database.db, [])).toEqual([])
})

test('a change that ends nothing, or ends another disk, is no reason', async () => {
  await database.db.transaction().execute(place.server)
  await database.db.transaction().execute(ending('server', 'server.start'))
  const own = id
  id = newUuid(systemRandom)
  await database.db.transaction().execute(place.server)
  await database.db.transaction().execute(ending('server', 'server.delete'))
  id = own
  expect(await race(async () => {}, snapshot('server'))).toBe('accepted')
})
