import { beforeEach, describe, expect, test } from 'vitest'
import { mirrorNode } from '../../../db/placement/nodes.ts'
import { findCandidate } from '../../../db/placement/placement.ts'
import { listQuotas } from '../../../db/account/quotas.ts'
import { claimServer, findServerClaims, releaseServer } from '../../../db/server/claims.ts'
import { releaseTarget, cutOverPlacement } from '../../../db/server/moves.ts'
import { acceptSizeChange, beginSizeChange, endSizeChange } from '../../../db/server/sizes.ts'
import { Problem } from '../../../domain/problem.ts'
import type { Room } from '../../../domain/node/placement.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { createAccount, setQuotas } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()
const now = new Date('2026-01-01T00:00:00Z')
const room = (cores: number, memoryMebibytes = cores * 512, storageGibibytes = cores): Room => ({
  cores,
  memoryMebibytes,
  storageGibibytes,
})

let accountId: string
let node: string
let nodes = 0

beforeEach(async () => {
  accountId = await createAccount(database.db)
  node = `node-${++nodes}`
  await mirrorNode(database.db, {
    node,
    zone: node,
    rack: 'r',
    cpuPool: 'blue',
    dedicatedAccountId: null,
    isSchedulable: true,
    total: room(8),
  })
})

async function place(size: Room): Promise<{ readonly accountId: string; readonly serverId: string }> {
  const serverId = newUuid(systemRandom)
  await database.db
    .transaction()
    .execute((tx) =>
      claimServer(tx, { accountId, serverId, hostname: serverId, zone: node, ...size }, { now, random: systemRandom }),
    )
  return { accountId, serverId }
}
type Server = Awaited<ReturnType<typeof place>>
const begin = (server: Server, size: Room & { readonly cpuPool?: string }, operationId = 'op-1') =>
  database.db.transaction().execute((tx) => beginSizeChange(tx, { ...server, operationId, ...size }, now))
const end = (
  server: Server,
  how: { readonly isDone: boolean; readonly grownGibibytes?: number },
  operationId = 'op-1',
) => database.db.transaction().execute((tx) => endSizeChange(tx, { ...server, operationId, ...how }))
const held = async (server: Server) => {
  const { placement } = (await findServerClaims(database.db, server)) ?? { placement: room(0) }
  return room(placement.cores, placement.memoryMebibytes, placement.storageGibibytes)
}
const usedOnNode = async () => (await findCandidate(database.db, node))?.used
const used = async () => {
  const amounts = Object.fromEntries(
    (await listQuotas(database.db, accountId)).map(({ name, used: amount }) => [name, amount]),
  )
  return room(amounts['cores'] ?? 0, amounts['memory_mebibytes'], amounts['storage_gibibytes'])
}
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => (error instanceof Problem ? error.members.reason : Promise.reject(error)),
  )
const everywhere = async (server: Server) => [await held(server), await usedOnNode(), await used()]

describe('a change of size', () => {
  test.each([
    ['up', room(2), room(4), room(4), room(4)],
    ['down, though the disk stays', room(4), room(2), room(4), room(2, 1_024, 4)],
    ['in several ways at once', room(2, 1_024, 2), room(1, 2_048, 3), room(2, 2_048, 3), room(1, 2_048, 3)],
  ])('%s holds the larger of both until it is done', async (_way, before, after, meanwhile, done) => {
    const server = await place(before)
    await begin(server, after)
    expect(await everywhere(server)).toEqual([meanwhile, meanwhile, meanwhile])
    await end(server, { isDone: true })
    expect(await everywhere(server)).toEqual([done, done, done])
  })

  test('that does not come about leaves the server as it was, with the disk that has grown', async () => {
    const server = await place(room(2))
    await begin(server, room(4))
    await end(server, { isDone: false })
    expect(await everywhere(server)).toEqual([room(2), room(2), room(2)])
    await begin(server, room(4), 'op-2')
    await end(server, { isDone: false, grownGibibytes: 4 }, 'op-2')
    const grown = room(2, 1_024, 4)
    expect(await everywhere(server)).toEqual([grown, grown, grown])
  })

  test('that starts or ends twice counts once; the end of another changes nothing', async () => {
    const server = await place(room(2))
    expect(await begin(server, room(4))).toEqual(await begin(server, room(4)))
    await end(server, { isDone: false }, 'op-0')
    expect(await everywhere(server)).toEqual([room(4), room(4), room(4)])
    await end(server, { isDone: true })
    await end(server, { isDone: false })
    expect(await everywhere(server)).toEqual([room(4), room(4), room(4)])
  })

  test.each([
    ['the node has no room', room(9), 'no_capacity'],
    ['the node is of another pool', { ...room(4), cpuPool: 'red' }, 'no_capacity'],
  ])('is refused when %s, and leaves nothing', async (_why, size, reason) => {
    const server = await place(room(2))
    expect(await refusal(begin(server, size))).toBe(reason)
    expect(await everywhere(server)).toEqual([room(2), room(2), room(2)])
  })

  test('is refused above the quota, while another one is under way, and of a server that holds nothing', async () => {
    const server = await place(room(2))
    await setQuotas(database.db, 3, { accountId, name: 'cores' })
    expect(await refusal(begin(server, room(4)))).toBe('quota_exceeded')
    await begin(server, room(3))
    expect(await refusal(begin(server, room(2), 'op-2'))).toBe('state_not_allowed')
    expect(await refusal(begin({ accountId, serverId: 'nobody' }, room(2)))).toBe('state_not_allowed')
  })

  test('in the middle of which the server goes leaves nothing', async () => {
    const server = await place(room(2))
    await begin(server, room(4))
    await database.db.transaction().execute((tx) => releaseServer(tx, server))
    await end(server, { isDone: true })
    expect([await usedOnNode(), await used()]).toEqual([room(0), room(0)])
  })

  test.each([
    ['up', room(2), room(4)],
    ['down', room(4), room(2)],
  ])('%s of one server by many at once starts once', async (_way, before, after) => {
    const server = await place(before)
    const outcomes = await Promise.all([1, 2, 3, 4].map((number) => refusal(begin(server, after, `op-${number}`))))
    expect(outcomes.toSorted()).toEqual(['state_not_allowed', 'state_not_allowed', 'state_not_allowed', undefined])
    expect(await everywhere(server)).toEqual([room(4), room(4), room(4)])
  })

  test('of many at once never takes more than there is', async () => {
    const servers = [await place(room(1)), await place(room(1)), await place(room(1)), await place(room(1))]
    const outcomes = await Promise.all(servers.map((server) => refusal(begin(server, room(3)))))
    expect(outcomes.filter((reason) => reason === undefined)).toHaveLength(2)
    expect(await usedOnNode()).toEqual(room(8))
  })
})

describe('a change that only another node of the zone has room for', () => {
  const OTHER = () => `${node}-other`
  beforeEach(() =>
    mirrorNode(database.db, {
      node: OTHER(),
      zone: node,
      rack: 'r',
      cpuPool: 'blue',
      dedicatedAccountId: null,
      isSchedulable: true,
      total: room(16),
    }),
  )
  const SIZE = room(10)
  const usedOn = async (name: string) => (await findCandidate(database.db, name))?.used
  const nodesUsed = async () => [await usedOn(node), await usedOn(OTHER())]
  const settle = (server: Server, work: typeof cutOverPlacement) =>
    database.db.transaction().execute((tx) => work(tx, { ...server, operationId: 'op-1' }))

  test('holds the room there, and the server has its own size until it has arrived', async () => {
    const server = await place(room(2, 1_024, 4))
    await begin(server, SIZE)
    expect([await held(server), ...(await nodesUsed())]).toEqual([room(2, 1_024, 4), room(2, 1_024, 4), SIZE])
    expect((await findServerClaims(database.db, server))?.target).toEqual({
      operationId: 'op-1',
      zone: node,
      node: OTHER(),
    })
    await settle(server, cutOverPlacement)
    expect([await held(server), ...(await nodesUsed())]).toEqual([SIZE, room(0), SIZE])
    await end(server, { isDone: true })
    expect([await held(server), ...(await nodesUsed()), await used()]).toEqual([SIZE, room(0), SIZE, SIZE])
  })

  test.each([
    ['everything as it was when the server stays', releaseTarget, [room(2), room(0)]],
    ['the old size on the other node when it is given up there', cutOverPlacement, [room(0), room(2)]],
  ] as const)('leaves %s', async (_what, settling, left) => {
    const server = await place(room(2))
    await begin(server, SIZE)
    await settle(server, settling)
    await end(server, { isDone: false })
    expect([await held(server), ...(await nodesUsed()), await used()]).toEqual([room(2), ...left, room(2)])
  })

  test('leaves the size that it was when the server arrives all the same', async () => {
    const server = await place(room(2))
    await begin(server, SIZE)
    await end(server, { isDone: false })
    expect([await held(server), ...(await nodesUsed()), await used()]).toEqual([room(2), room(2), SIZE, room(2)])
    await settle(server, cutOverPlacement)
    expect([await held(server), ...(await nodesUsed())]).toEqual([room(2), room(0), room(2)])
  })

  test('in the middle of which the server goes leaves nothing on either', async () => {
    const server = await place(room(2))
    await begin(server, SIZE)
    await database.db.transaction().execute((tx) => releaseServer(tx, server))
    expect([...(await nodesUsed()), await used()]).toEqual([room(0), room(0), room(0)])
  })

  test('is accepted without taking anything, as long as there is such a node', async () => {
    const server = await place(room(2))
    const accept = (changes: object) =>
      database.db
        .transaction()
        .execute((tx) => acceptSizeChange(tx, { ...server, operationId: 'op-1', ...SIZE, ...changes }, now))
    expect(await accept({})).toEqual({ operationId: 'op-1', before: room(2), after: SIZE })
    expect([...(await nodesUsed()), await used()]).toEqual([room(2), room(0), room(2)])
    expect(await refusal(accept({ excludedNodes: [OTHER()] }))).toBe('no_capacity')
    await accept(room(3))
    expect(await nodesUsed()).toEqual([room(3), room(0)])
  })
})
