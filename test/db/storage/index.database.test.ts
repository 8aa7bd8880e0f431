/** Whose a storage is, step by step, and the room and quota that it holds meanwhile. */
import { beforeEach, describe, expect, test } from 'vitest'
import { listQuotas } from '../../../db/account/quotas.ts'
import { mirrorNode } from '../../../db/placement/nodes.ts'
import { findCandidate } from '../../../db/placement/placement.ts'
import { claimServer, releaseServer } from '../../../db/server/claims.ts'
import { cutOverPlacement, releaseTarget, reserveTarget } from '../../../db/server/moves.ts'
import {
  attachStorage,
  claimStorage,
  deleteStorageClaim,
  detachStorage,
  findStorageClaim,
  keepStorage,
  landStorage,
  landStorageMove,
  listStoragesOn,
  releaseStorage,
  releaseStorageMove,
  reserveStorageMove,
  resizeStorageClaim,
  withdrawAttachment,
  withdrawResize,
} from '../../../db/storage/index.ts'
import { Problem, Unavailable } from '../../../domain/problem.ts'
import { DATA_STORAGES_PER_SERVER_MAXIMUM } from '../../../domain/storage/rules.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()
const now = new Date('2026-01-01T00:00:00Z')
const BOOT_GIBIBYTES = 4
const OPERATION = 'op-1'

let accountId: string
let zone: string
let zones = 0
let nodes: readonly [home: string, other: string]

beforeEach(async () => {
  accountId = await createAccount(database.db)
  zone = `disks-${++zones}`
  nodes = [`${zone}-home`, `${zone}-other`]
  await addNode(nodes[0])
})

const addNode = (node: string, itsZone = zone, hasBackups = false) =>
  mirrorNode(database.db, {
    hasBackups,
    node,
    zone: itsZone,
    rack: 'rack-1',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 64, memoryMebibytes: 65_536, storageGibibytes: 100 },
  })
const transaction: ReturnType<typeof database.db.transaction>['execute'] = (work) =>
  database.db.transaction().execute(work)
/** Placed on the only node that there is by then. */
async function placeServer(): Promise<string> {
  const serverId = newUuid(systemRandom)
  const demand = { accountId, serverId, hostname: `host-${serverId}`, zone, cores: 1, memoryMebibytes: 512 }
  await transaction((tx) =>
    claimServer(tx, { ...demand, storageGibibytes: BOOT_GIBIBYTES }, { now, random: systemRandom }),
  )
  return serverId
}
async function makeStorage(node = nodes[0], sizeGibibytes = 10) {
  const id = { accountId, storageId: newUuid(systemRandom) }
  await transaction((tx) => claimStorage(tx, { ...id, zone, sizeGibibytes, preferredNode: node }, now))
  return id
}
type Storage = Awaited<ReturnType<typeof makeStorage>>
const attach = (storage: Storage, serverId: string) =>
  transaction((tx) => attachStorage(tx, { ...storage, serverId, volume: `volume-${storage.storageId}` }))
const land = (storage: Storage, serverId: string, node = nodes[0]) =>
  transaction((tx) => landStorage(tx, { ...storage, serverId, node }))
const release = (storage: Storage) => transaction((tx) => releaseStorage(tx, { ...storage, isForced: false }))
const remove = (storage: Storage) => transaction((tx) => deleteStorageClaim(tx, storage))
const moveOf = (serverId: string) => ({ accountId, serverId, operationId: OPERATION })
const reserve = (serverId: string) => transaction((tx) => reserveTarget(tx, moveOf(serverId), now))
const claimOf = (storage: Storage) => findStorageClaim(database.db, storage)
const usedOn = async (node: string) => (await findCandidate(database.db, node))?.used.storageGibibytes
const quotaUsed = async () =>
  (await listQuotas(database.db, accountId))
    .map(({ name, used }) => [name, used] as const)
    .filter(([, used]) => used > 0)
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => (error instanceof Problem ? error : Promise.reject(error)),
  )
const CONFLICT = { status: 409, members: { reason: 'state_not_allowed' } }

describe('a storage that is attached', () => {
  test("is its server's from then on, and holds the room once, however often it is asked for", async () => {
    const [serverId, storage] = [await placeServer(), await makeStorage()]
    for (const _again of [1, 2]) await attach(storage, serverId)
    expect(await claimOf(storage)).toMatchObject({ phase: 'arriving', serverId, node: nodes[0] })
    for (const _again of [1, 2]) await land(storage, serverId)
    expect(await claimOf(storage)).toMatchObject({ phase: 'attached', serverId, node: undefined })
    await attach(storage, serverId)
    expect(await claimOf(storage)).toMatchObject({ phase: 'attached', serverId })
    expect(await usedOn(nodes[0])).toBe(BOOT_GIBIBYTES + 10)
  })

  test('goes to one of two servers that want it at once', async () => {
    const [one, other, storage] = [await placeServer(), await placeServer(), await makeStorage()]
    const answers = await Promise.all([one, other].map((serverId) => refusal(attach(storage, serverId))))
    expect(answers.filter((answer) => answer === undefined)).toHaveLength(1)
    expect(answers.find((answer) => answer !== undefined)).toMatchObject({
      status: 409,
      members: { reason: 'in_use', resource: { type: 'storage', id: storage.storageId } },
    })
    expect(await claimOf(storage)).toMatchObject({ serverId: answers[0] === undefined ? one : other })
    expect(await usedOn(nodes[0])).toBe(2 * BOOT_GIBIBYTES + 10)
  })

  test('holds room on both nodes until its data are with the server', async () => {
    const serverId = await placeServer()
    await addNode(nodes[1])
    const storage = await makeStorage(nodes[1])
    await attach(storage, serverId)
    expect([await usedOn(nodes[0]), await usedOn(nodes[1])]).toEqual([BOOT_GIBIBYTES + 10, 10])
    await land(storage, serverId)
    expect([await usedOn(nodes[0]), await usedOn(nodes[1])]).toEqual([BOOT_GIBIBYTES + 10, 0])
  })

  test('that has not arrived is detached at once, and gives the room back', async () => {
    const serverId = await placeServer()
    await addNode(nodes[1])
    const storage = await makeStorage(nodes[1])
    await attach(storage, serverId)
    for (const _again of [1, 2]) await release(storage)
    expect(await claimOf(storage)).toMatchObject({ phase: 'detached', serverId: undefined, node: nodes[1] })
    expect([await usedOn(nodes[0]), await usedOn(nodes[1])]).toEqual([BOOT_GIBIBYTES, 10])
  })

  test('finds no room where its server has none', async () => {
    const serverId = await placeServer()
    await addNode(nodes[1])
    const storage = await makeStorage(nodes[1], 97)
    expect(await refusal(attach(storage, serverId))).toMatchObject({ status: 503, members: { reason: 'no_capacity' } })
    expect(await claimOf(storage)).toMatchObject({ phase: 'detached' })
    expect(await usedOn(nodes[0])).toBe(BOOT_GIBIBYTES)
  })

  test('has a separate slot, and one more than there are is refused', async () => {
    const serverId = await placeServer()
    for (let count = 0; count < DATA_STORAGES_PER_SERVER_MAXIMUM; count++)
      await attach(await makeStorage(nodes[0], 1), serverId)
    const slots = await database.db
      .selectFrom('storage_claim')
      .select('slot')
      .where('server_id', '=', serverId)
      .orderBy('slot')
      .execute()
    expect(slots.map(({ slot }) => slot)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(await refusal(attach(await makeStorage(nodes[0], 1), serverId))).toMatchObject(CONFLICT)
  })

  test('is never of another zone than its server', async () => {
    const [serverId, storage] = [await placeServer(), await makeStorage()]
    await database.db.updateTable('placement').set({ zone: 'away' }).where('server_id', '=', serverId).execute()
    expect(await refusal(attach(storage, serverId))).toMatchObject({
      status: 400,
      members: { errors: [{ field: 'serverId' }] },
    })
  })

  test('waits for a server that holds room', async () => {
    expect(await refusal(attach(await makeStorage(), newUuid(systemRandom)))).toMatchObject(CONFLICT)
  })
})

describe('while its server moves', () => {
  const world = async () => {
    const [serverId, attached, free] = [await placeServer(), await makeStorage(), await makeStorage()]
    await attach(attached, serverId)
    await land(attached, serverId)
    await addNode(nodes[1])
    return { serverId, attached, free }
  }

  test('no storage is attached, released or made larger; afterwards each is', async () => {
    const { serverId, attached, free } = await world()
    await reserve(serverId)
    const grow = () => transaction((tx) => resizeStorageClaim(tx, { ...attached, sizeGibibytes: 20 }))
    for (const work of [() => attach(free, serverId), () => release(attached), grow])
      expect(await refusal(work())).toMatchObject(CONFLICT)
    expect(await claimOf(attached)).toMatchObject({ phase: 'attached', sizeGibibytes: 10 })
    expect(await claimOf(free)).toMatchObject({ phase: 'detached' })
    await transaction((tx) => releaseTarget(tx, moveOf(serverId)))
    await grow()
    await attach(free, serverId)
    await release(attached)
    expect(await claimOf(attached)).toMatchObject({ phase: 'leaving', node: nodes[0], sizeGibibytes: 20 })
  })

  test('room for its storages is held where it goes, and given back where it was', async () => {
    const { serverId } = await world()
    await reserve(serverId)
    expect(await usedOn(nodes[1])).toBe(BOOT_GIBIBYTES + 10)
    await transaction((tx) => cutOverPlacement(tx, moveOf(serverId)))
    // The storage that is nobody's stays.
    expect([await usedOn(nodes[0]), await usedOn(nodes[1])]).toEqual([10, BOOT_GIBIBYTES + 10])
  })

  test('a move waits for a storage that is on its node and not with the guest yet', async () => {
    const { serverId, free } = await world()
    await attach(free, serverId)
    await expect(reserve(serverId)).rejects.toThrow(Unavailable)
    await land(free, serverId)
    await reserve(serverId)
  })
})

describe('a change that claimed and was not written', () => {
  const withdraw = (storage: Storage, serverId: string, isDesired: boolean) =>
    transaction((tx) => withdrawAttachment(tx, { ...storage, serverId }, isDesired))

  test('gives its attachment back', async () => {
    const [serverId, storage] = [await placeServer(), await makeStorage()]
    await attach(storage, serverId)
    await withdraw(storage, serverId, false)
    expect(await claimOf(storage)).toMatchObject({ phase: 'detached', serverId: undefined })
  })

  test('leaves the attachment to another change for the same server that was written', async () => {
    const [serverId, storage] = [await placeServer(), await makeStorage()]
    await attach(storage, serverId)
    await land(storage, serverId)
    await attach(storage, serverId)
    await withdraw(storage, serverId, true)
    expect(await claimOf(storage)).toMatchObject({ phase: 'attached', serverId })
  })

  test('takes the storage from no other server', async () => {
    const [serverId, other, storage] = [await placeServer(), await placeServer(), await makeStorage()]
    await attach(storage, serverId)
    await withdraw(storage, other, false)
    expect(await claimOf(storage)).toMatchObject({ phase: 'arriving', serverId })
  })

  test('holds the size that another change has written', async () => {
    const storage = await makeStorage()
    const resize = (sizeGibibytes: number) => transaction((tx) => resizeStorageClaim(tx, { ...storage, sizeGibibytes }))
    await resize(30)
    await resize(20)
    await transaction((tx) => withdrawResize(tx, storage, { sizeGibibytes: 30, isBoot: false }))
    expect(await claimOf(storage)).toMatchObject({ sizeGibibytes: 30 })
    expect(await usedOn(nodes[0])).toBe(30)
  })
})

describe('a storage that is detached', () => {
  test('stays where its server is, until the guest has released it', async () => {
    const [serverId, storage] = [await placeServer(), await makeStorage()]
    await attach(storage, serverId)
    await land(storage, serverId)
    await release(storage)
    expect(await claimOf(storage)).toMatchObject({ phase: 'leaving', serverId, node: nodes[0] })
    expect(await refusal(attach(storage, serverId))).toMatchObject({ status: 409, members: { reason: 'in_use' } })
    expect(await transaction((tx) => keepStorage(tx, storage))).toBe(true)
    expect(await claimOf(storage)).toMatchObject({ phase: 'attached', node: undefined })
    await release(storage)
    for (const _again of [1, 2]) await transaction((tx) => detachStorage(tx, storage))
    expect(await claimOf(storage)).toMatchObject({ phase: 'detached', serverId: undefined, node: nodes[0] })
    expect(await usedOn(nodes[0])).toBe(BOOT_GIBIBYTES + 10)
  })

  test('is left by a server that goes, with its room', async () => {
    const [serverId, storage] = [await placeServer(), await makeStorage()]
    await attach(storage, serverId)
    await land(storage, serverId)
    await transaction((tx) => releaseServer(tx, { accountId, serverId }))
    expect(await claimOf(storage)).toMatchObject({ phase: 'detached', serverId: undefined, node: nodes[0] })
    expect(await usedOn(nodes[0])).toBe(10)
  })
})

describe('a storage that is deleted', () => {
  test('keeps all that it holds while a server has it', async () => {
    const [serverId, storage] = [await placeServer(), await makeStorage()]
    await attach(storage, serverId)
    const before = await quotaUsed()
    await expect(remove(storage)).rejects.toThrow(Unavailable)
    await land(storage, serverId)
    await expect(remove(storage)).rejects.toThrow(Unavailable)
    await release(storage)
    await expect(remove(storage)).rejects.toThrow(Unavailable)
    expect(await claimOf(storage)).toMatchObject({ phase: 'leaving', serverId })
    expect([await quotaUsed(), await usedOn(nodes[0])]).toEqual([before, BOOT_GIBIBYTES + 10])
  })

  test('gives back room and quota once, and was held once', async () => {
    const storage = await makeStorage()
    await transaction((tx) => claimStorage(tx, { ...storage, zone, sizeGibibytes: 10 }, now))
    expect(await usedOn(nodes[0])).toBe(10)
    expect(await quotaUsed()).not.toEqual([])
    for (const _again of [1, 2]) await remove(storage)
    expect([await claimOf(storage), await usedOn(nodes[0]), await quotaUsed()]).toEqual([undefined, 0, []])
  })
})

describe('a storage that moves by itself', () => {
  const reserveMove = (storage: Storage, request: { node?: string; excludedNodes?: readonly string[] } = {}) =>
    transaction((tx) => reserveStorageMove(tx, { ...storage, ...request }))
  const landMove = (storage: Storage, node = nodes[1]) => transaction((tx) => landStorageMove(tx, { ...storage, node }))
  const used = () => Promise.all(nodes.map(usedOn))

  test('holds room on both nodes until it has landed, once, however often it is asked for', async () => {
    const storage = await makeStorage()
    await addNode(nodes[1])
    for (const _again of [1, 2]) expect(await reserveMove(storage)).toBe(nodes[1])
    expect(await claimOf(storage)).toMatchObject({ node: nodes[0], targetNode: nodes[1] })
    expect(await used()).toEqual([10, 10])
    expect(await listStoragesOn(database.db, nodes[1])).toEqual([{ ...storage, sizeGibibytes: 10, isArriving: true }])
    for (const _again of [1, 2]) await landMove(storage)
    expect(await claimOf(storage)).toMatchObject({ phase: 'detached', node: nodes[1], targetNode: undefined })
    expect(await used()).toEqual([0, 10])
  })

  test('lands nowhere but where it was to go', async () => {
    const storage = await makeStorage()
    await addNode(nodes[1])
    await reserveMove(storage)
    await landMove(storage, nodes[0])
    expect(await claimOf(storage)).toMatchObject({ node: nodes[0], targetNode: nodes[1] })
  })

  test('gives the room back when it stays, is attached, or is deleted', async () => {
    const serverId = await placeServer()
    await addNode(nodes[1])
    const [stays, attached, deleted] = [await makeStorage(), await makeStorage(), await makeStorage()]
    for (const storage of [stays, attached, deleted]) await reserveMove(storage)
    expect(await usedOn(nodes[1])).toBe(30)
    for (const _again of [1, 2]) await transaction((tx) => releaseStorageMove(tx, stays))
    await attach(attached, serverId)
    await remove(deleted)
    expect(await used()).toEqual([BOOT_GIBIBYTES + 20, 0])
    await landMove(attached)
    expect(await claimOf(attached)).toMatchObject({ phase: 'arriving', node: nodes[0], targetNode: undefined })
  })

  test('goes to no node that is excluded, full or its own, and does not grow on its way', async () => {
    const storage = await makeStorage()
    expect(await refusal(reserveMove(storage))).toMatchObject({ status: 503, members: { reason: 'no_capacity' } })
    expect(await refusal(reserveMove(storage, { node: nodes[0] }))).toMatchObject({ status: 503 })
    await addNode(nodes[1])
    expect(await refusal(reserveMove(storage, { excludedNodes: [nodes[1]] }))).toMatchObject({ status: 503 })
    await reserveMove(storage, { node: nodes[1] })
    const grow = transaction((tx) => resizeStorageClaim(tx, { ...storage, sizeGibibytes: 20 }))
    expect(await refusal(grow)).toMatchObject(CONFLICT)
    await makeStorage(nodes[1], 5)
    const big = await makeStorage(nodes[0], 90)
    expect(await refusal(reserveMove(big))).toMatchObject({ status: 503 })
    expect(await used()).toEqual([100, 15])
  })

  test('that a server has goes with that', async () => {
    const [serverId, storage] = [await placeServer(), await makeStorage()]
    await addNode(nodes[1])
    await attach(storage, serverId)
    expect(await refusal(reserveMove(storage))).toMatchObject(CONFLICT)
  })
})

describe('from a backup', () => {
  const claim = async () => {
    const id = { accountId, storageId: newUuid(systemRandom) }
    const demand = { ...id, zone, sizeGibibytes: 10, preferredNode: nodes[0], isFromBackup: true }
    await transaction((tx) => claimStorage(tx, demand, now))
    return (await findStorageClaim(database.db, id))?.node
  }

  test('it is made on a node that reaches the backups, whichever is preferred', async () => {
    await addNode(nodes[1], zone, true)
    expect(await claim()).toBe(nodes[1])
    await addNode(nodes[0], zone, true)
    expect(await claim()).toBe(nodes[0])
  })

  test('where no node does, there is no room', () => expect(claim()).rejects.toMatchObject({ status: 503 }))
})
