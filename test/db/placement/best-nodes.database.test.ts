/** The query that chooses nodes against the rules that it stands for. */
import fc from 'fast-check'
import { sql, type Transaction } from 'kysely'
import { expect, test } from 'vitest'
import { listBestNodes } from '../../../db/placement/best-nodes.ts'
import type { Tables } from '../../../db/tables.ts'
import { type Candidate, type Demand, NO_ROOM, rankNodes, type Room, SPREADS } from '../../../domain/node/placement.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()
const [MINE, THEIRS] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
const RUNS = 200

const anyRoom = (maximum: number) =>
  fc.record({ cores: fc.nat(maximum), memoryMebibytes: fc.nat(maximum * 7), storageGibibytes: fc.nat(maximum * 3) })
const anyNodes = fc.uniqueArray(
  fc
    .record({
      node: fc.stringMatching(/^[a-eA.-]{1,2}$/),
      zone: fc.constantFrom('z1', 'z2'),
      rack: fc.constantFrom('r1', 'r2'),
      cpuPool: fc.constantFrom(null, 'p'),
      dedicatedAccountId: fc.constantFrom(null, MINE, THEIRS),
      isSchedulable: fc.boolean(),
      total: anyRoom(30),
      claimed: anyRoom(20),
      forgotten: fc.oneof(fc.constant(NO_ROOM), anyRoom(8)),
    })
    .map(({ claimed, forgotten, ...node }): Candidate & { readonly claimed: Room; readonly forgotten: Room } => ({
      ...node,
      claimed,
      forgotten,
      used: {
        cores: claimed.cores + forgotten.cores,
        memoryMebibytes: claimed.memoryMebibytes + forgotten.memoryMebibytes,
        storageGibibytes: claimed.storageGibibytes + forgotten.storageGibibytes,
      },
    })),
  { selector: ({ node }) => node, maxLength: 14 },
)
const anyPlace = fc.record({
  node: fc.stringMatching(/^[a-eA.]$/),
  rack: fc.constantFrom('r1', 'r2', 'r3'),
  zone: fc.constantFrom('z1', 'z2'),
})
const anyDemand: fc.Arbitrary<Demand> = fc.record({
  accountId: fc.constantFrom(MINE, 'nobody'),
  zone: fc.constantFrom('z1', 'z2'),
  cpuPool: fc.constantFrom(undefined, 'p'),
  excludedNodes: fc.array(fc.stringMatching(/^[a-eA.]$/), { maxLength: 3 }),
  cores: fc.nat(8),
  memoryMebibytes: fc.nat(60),
  storageGibibytes: fc.nat(20),
  apartness: fc.option(
    fc.record({
      spread: fc.constantFrom(...SPREADS),
      isStrict: fc.boolean(),
      members: fc.array(anyPlace, { maxLength: 6 }),
    }),
    { nil: undefined },
  ),
})

test('for any nodes and demand it finds the nodes of the rules, in their order', async () => {
  await fc.assert(
    fc.asyncProperty(anyNodes, anyDemand, async (nodes, demand) => {
      await database.db.deleteFrom('node_capacity').execute()
      if (nodes.length > 0) {
        await database.db
          .insertInto('node_capacity')
          .values(
            nodes.map(
              ({ node, zone, rack, cpuPool, dedicatedAccountId, isSchedulable, total, claimed, forgotten }) => ({
                node,
                zone,
                rack,
                cpu_pool: cpuPool,
                dedicated_account_id: dedicatedAccountId,
                is_schedulable: isSchedulable,
                cores: total.cores,
                memory_mebibytes: total.memoryMebibytes,
                storage_gibibytes: total.storageGibibytes,
                cores_used: claimed.cores,
                memory_mebibytes_used: claimed.memoryMebibytes,
                storage_gibibytes_used: claimed.storageGibibytes,
                cores_forgotten: forgotten.cores,
                memory_mebibytes_forgotten: forgotten.memoryMebibytes,
                storage_gibibytes_forgotten: forgotten.storageGibibytes,
              }),
            ),
          )
          .execute()
      }
      const ranked = rankNodes(
        demand,
        nodes.map(({ claimed: _claimed, ...node }) => node),
      )
      expect(await listBestNodes(database.db, demand, 100)).toEqual(ranked)
      expect(await listBestNodes(database.db, demand, 3)).toEqual(ranked.slice(0, 3))
    }),
    { numRuns: RUNS },
  )
})

test('of thousands of nodes it reads the few that it answers, also past as many that are full', async () => {
  await database.db.deleteFrom('node_capacity').execute()
  await sql`
    insert into node_capacity (node, zone, rack, is_schedulable, cores, memory_mebibytes, storage_gibibytes, cores_used)
    select 'n' || number, 'z1', 'r1', true, 32, 64000, 640, case when number <= 2000 then 32 else number % 9 end
    from generate_series(1, 4000) number`.execute(database.db)
  await sql`analyze node_capacity`.execute(database.db)
  const demand: Demand = { accountId: MINE, zone: 'z1', cores: 2, memoryMebibytes: 1_024, storageGibibytes: 10 }
  const rowsRead = async (tx: Transaction<Tables>): Promise<number> => {
    const { rows } = await sql<{ rows: number }>`
      select seq_tup_read + coalesce(idx_tup_fetch, 0) as rows
      from pg_stat_xact_user_tables where relname = 'node_capacity'`.execute(tx)
    return rows[0]?.rows ?? 0
  }
  const read = await database.db.transaction().execute(async (tx) => {
    const before = await rowsRead(tx)
    const best = await listBestNodes(tx, demand)
    expect(best.map(({ used }) => used.cores)).toEqual(Array.from({ length: 16 }, () => 8))
    return (await rowsRead(tx)) - before
  })
  expect(read).toBeLessThanOrEqual(32)
})
