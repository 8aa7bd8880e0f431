/** Machines that are missing without an order: what is left of them in PostgreSQL and on hosts. */
import { beforeEach, expect, test } from 'vitest'
import { nodePoolController } from '../../../../controllers/nouns/node-pool/index.ts'
import type { Observed } from '../../../../controllers/nouns/node-pool/observed.ts'
import { findLostMachines } from '../../../../controllers/nouns/managed-machine/index.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { confirmRemoval, listOpenRemovals, orderRemoval } from '../../../../db/removal/index.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { NodeReport } from '../../../../resources/instance/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { machineOf, poolWith } from '../node-pool/situations.ts'

const database = useDatabase()
const MADE = new Date('2026-03-01T12:00:00Z')
const later = (minutes: number) => ({ now: () => new Date(MADE.getTime() + minutes * 60_000) }) as never
let accountId: string
let namespace: string

beforeEach(async () => {
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
})

const cachesWith = (servers: readonly string[], guests: readonly object[] = []) => ({
  of: (type: { readonly kind: string }) => ({
    get: ({ name }: { readonly name: string }) =>
      type.kind === Server.kind && servers.includes(name) ? { metadata: { name } } : undefined,
    list: () => (type.kind === NodeReport.kind ? [{ status: { unnamed: guests } }] : []),
    by: () => [],
    addIndex() {},
  }),
})

test('a machine is lost while its claims or its guest are left', async () => {
  await mirrorNode(database.db, {
    node: 'n',
    zone: 'z',
    rack: 'r',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 100, memoryMebibytes: 100_000, storageGibibytes: 1_000 },
  })
  const room = { zone: 'z', node: 'n', cores: 1, memory_mebibytes: 1, storage_gibibytes: 1, claimed_at: MADE }
  for (const [server_id, managed_by] of [
    ['there', 'edge:e'],
    ['lost', 'edge:e'],
    ['of another', 'edge:f'],
  ] as const)
    await database.db
      .insertInto('placement')
      .values({ ...room, account_id: accountId, server_id, managed_by })
      .execute()
  const guests = [{ server: { namespace, name: 'runs' } }, { server: { namespace: 'other', name: 'no' } }, {}]
  const parts = { db: database.db, caches: cachesWith(['there'], guests) } as never // it reads no more
  expect(await findLostMachines(parts, { type: 'edge', id: 'e', namespace, accountId })).toEqual(['lost', 'runs'])
})

test('a node of a pool was removed by an order for its server, and not for an earlier one', async () => {
  const { serverId } = machineOf(0)
  const known = { serverId, serverUid: 'this one', serverCreatedAt: MADE.toISOString(), hostname: 'h' }
  const node = { ...known, state: 'started' as const, isReady: true, kubeletVersion: '' }
  const pool = { ...poolWith({ status: { nodes: [node] } }), metadata: { name: 'p', namespace, uid: 'u' } }
  const parts = { db: database.db, caches: cachesWith([]), store: { get: async () => undefined }, clock: later(0) }
  const reconciler = nodePoolController.open(parts as never) // what it opens and observes needs no more
  const removed = async () => ((await reconciler?.observe(pool, MADE)) as Observed | undefined)?.removed
  const of = { kind: Server.kind, namespace, name: serverId }
  const order = (uid: string, reason: 'deleted' | 'operator', minutes: number) =>
    orderRemoval(database.db, { ...of, uid }, { reason, clock: later(minutes), random: systemRandom })
  await order('an earlier one', 'deleted', 1)
  await order('', 'operator', -1)
  expect(await removed()).toEqual([])
  // What an operator gave up before, and was made since, can be given up again.
  await confirmRemoval(database.db, { ...of, uid: '' }, MADE)
  await order('', 'operator', 1)
  expect(await removed()).toEqual([serverId])
  expect((await listOpenRemovals(database.db, Server.kind)).filter(({ uid }) => uid === '')).toHaveLength(1)
  await database.db.deleteFrom('removal').where('uid', '=', '').execute()
  expect(await removed()).toEqual([])
  await order('this one', 'deleted', 1)
  expect(await removed()).toEqual([serverId])
})
