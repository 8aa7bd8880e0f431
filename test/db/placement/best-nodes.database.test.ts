/** The query that chooses nodes against the rules that it stands for. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { listBestNodes } from '../../../db/placement/best-nodes.ts'
import { type Candidate, type Demand, rankNodes, SPREADS } from '../../../domain/placement.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()
const [MINE, THEIRS] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
const RUNS = 200

const anyRoom = (maximum: number) =>
  fc.record({ cores: fc.nat(maximum), memoryMebibytes: fc.nat(maximum * 7), storageGibibytes: fc.nat(maximum * 3) })
const anyNodes = fc.uniqueArray(
  fc.record<Candidate>({
    node: fc.stringMatching(/^[a-eA.-]{1,2}$/),
    zone: fc.constantFrom('z1', 'z2'),
    rack: fc.constantFrom('r1', 'r2'),
    cpuPool: fc.constantFrom(null, 'p'),
    dedicatedAccountId: fc.constantFrom(null, MINE, THEIRS),
    isSchedulable: fc.boolean(),
    total: anyRoom(30),
    used: anyRoom(20),
  }),
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
            nodes.map(({ node, zone, rack, cpuPool, dedicatedAccountId, isSchedulable, total, used }) => ({
              node,
              zone,
              rack,
              cpu_pool: cpuPool,
              dedicated_account_id: dedicatedAccountId,
              is_schedulable: isSchedulable,
              cores: total.cores,
              memory_mebibytes: total.memoryMebibytes,
              storage_gibibytes: total.storageGibibytes,
              cores_used: used.cores,
              memory_mebibytes_used: used.memoryMebibytes,
              storage_gibibytes_used: used.storageGibibytes,
            })),
          )
          .execute()
      }
      const ranked = rankNodes(demand, nodes)
      expect(await listBestNodes(database.db, demand, 100)).toEqual(ranked)
      expect(await listBestNodes(database.db, demand, 3)).toEqual(ranked.slice(0, 3))
    }),
    { numRuns: RUNS },
  )
})
