/** Placing servers: the query that chooses the few best nodes against a greedy loop that reads and ranks every node for
 *  each server. The facts are for as many servers placed on empty nodes: how many nodes they use against the fewest
 *  that could hold them, and how long choosing and the complete claim take. */
import { claimBestRoom, claimPlacement, listBestNodes, listCandidates, mirrorNode } from '../db/placement/index.ts'
import type { Database } from '../db/kit/open.ts'
import type { Room } from '../domain/node/placement.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { newUuid, systemRandom } from '../kit/sys/random.ts'
import { createDatabase } from './postgres.ts'
import { type Bench, closedLoop, percentile, type Round } from './runner.ts'

const NODES = { full: 10_000, short: 20 }
const SERVERS = { full: 2_000, short: 20 }
/** Nodes that are mirrored together. */
const AT_ONCE = 10
const ZONE = 'zone-1'
const NODE: Room = { cores: 32, memoryMebibytes: 62 * 1_024, storageGibibytes: 640 }
/** Small servers are sold most. */
const SIZES: readonly (Room & { readonly share: number })[] = [
  { share: 0.4, cores: 1, memoryMebibytes: 1_024, storageGibibytes: 10 },
  { share: 0.3, cores: 2, memoryMebibytes: 4_096, storageGibibytes: 40 },
  { share: 0.2, cores: 4, memoryMebibytes: 8_192, storageGibibytes: 80 },
  { share: 0.1, cores: 8, memoryMebibytes: 16_384, storageGibibytes: 160 },
]
/** Its multiples are spread evenly: the sizes come in the same mixed order in every run. */
const GOLDEN_FRACTION = 0.6180339887498949

export const bench: Bench = {
  name: 'B08 placement',
  question: `servers of four sizes placed on ${NODES.full} nodes`,
  subjectName: 'best nodes by query',
  peerName: 'greedy full scan',
  unit: 'servers',
  goal: 2,
  heldBy: 'one choice in a hundred takes a fifth of a millisecond longer than its limit, on a thread that also claims.',
  tier: 'database',
  limits: { 'choosing p99 ms': 1 },
  async open(round) {
    const databases = [await createDatabase(), await createDatabase()] as const
    const [subject, peer] = [await openZone(databases[0].db, round), await openZone(databases[1].db, round)]
    const facts = await fill(subject, round)
    return {
      subject: { run: (seconds) => closedLoop(1, seconds, () => subject.inRoom((size) => claim(subject.db, size))) },
      peer: { run: (seconds) => closedLoop(1, seconds, () => peer.inRoom((size) => scan(peer.db, size))) },
      facts: () => facts,
      close: async () => {
        for (const database of databases) await database.drop()
      },
    }
  },
}

interface FilledZone {
  readonly db: Database
  /** Does the work for a server of the next size, in a zone that is emptied before it becomes full. */
  inRoom(work: (size: Room) => Promise<void>): Promise<void>
}

async function openZone(db: Database, round: Round): Promise<FilledZone> {
  const numbers = Array.from({ length: NODES[round] }, (_, number) => number)
  while (numbers.length > 0)
    await Promise.all(
      numbers.splice(0, AT_ONCE).map((number) =>
        mirrorNode(db, {
          node: `node-${number}`,
          zone: ZONE,
          rack: `rack-${number % 20}`,
          cpuPool: null,
          dedicatedAccountId: null,
          isSchedulable: true,
          total: NODE,
        }),
      ),
    )
  const next = sizes()
  let placed = 0
  return {
    db,
    async inRoom(work) {
      if (placed++ >= SERVERS[round]) placed = await empty(db)
      await work(next())
    },
  }
}

async function empty(db: Database): Promise<0> {
  await db.deleteFrom('placement').execute()
  await db
    .updateTable('node_capacity')
    .set({ cores_used: 0, memory_mebibytes_used: 0, storage_gibibytes_used: 0 })
    .execute()
  return 0
}

function sizes(): () => Room {
  let number = 0
  return () => {
    let left = (++number * GOLDEN_FRACTION) % 1
    const { share: _share, ...size } = SIZES.find(({ share }) => (left -= share) < 0) ??
      SIZES[0] ?? { share: 1, ...NODE }
    return size
  }
}

const demandOf = (size: Room) => ({
  accountId: newUuid(systemRandom),
  serverId: newUuid(systemRandom),
  zone: ZONE,
  ...size,
})

const claim = (db: Database, size: Room): Promise<void> =>
  db.transaction().execute(async (tx) => void (await claimPlacement(tx, demandOf(size), clock.now())))

const scan = (db: Database, size: Room): Promise<void> =>
  db.transaction().execute(async (tx) => {
    const { accountId, serverId, zone, ...room } = demandOf(size)
    const node = await claimBestRoom(tx, { accountId, zone, ...room }, () => listCandidates(tx, zone))
    await tx
      .insertInto('placement')
      .values({
        account_id: accountId,
        server_id: serverId,
        zone,
        node,
        cores: room.cores,
        memory_mebibytes: room.memoryMebibytes,
        storage_gibibytes: room.storageGibibytes,
        claimed_at: clock.now(),
      })
      .execute()
  })

/** Fills the zone once, and empties it again. */
async function fill({ db }: FilledZone, round: Round): Promise<Readonly<Record<string, string | number>>> {
  const next = sizes()
  const [choosing, claiming]: [number[], number[]] = [[], []]
  const total = { cores: 0, memoryMebibytes: 0, storageGibibytes: 0 }
  const timed = async (durations: number[], work: () => Promise<unknown>): Promise<void> => {
    const before = clock.monotonicMilliseconds()
    await work()
    durations.push(clock.monotonicMilliseconds() - before)
  }
  for (let number = 0; number < SERVERS[round]; number++) {
    const size = next()
    await timed(choosing, () => listBestNodes(db, demandOf(size)))
    await timed(claiming, () => claim(db, size))
    total.cores += size.cores
    total.memoryMebibytes += size.memoryMebibytes
    total.storageGibibytes += size.storageGibibytes
  }
  const used = (await listCandidates(db, ZONE)).filter((node) => node.used.cores > 0).length
  const fewest = Math.ceil(
    Math.max(
      total.cores / NODE.cores,
      total.memoryMebibytes / NODE.memoryMebibytes,
      total.storageGibibytes / NODE.storageGibibytes,
    ),
  )
  await empty(db)
  return {
    'nodes used': used,
    'fewest possible': fewest,
    'used / fewest': (used / fewest).toFixed(3),
    'choosing p50 ms': percentile(choosing, 0.5).toFixed(2),
    'choosing p99 ms': percentile(choosing, 0.99).toFixed(2),
    'claim p99 ms': percentile(claiming, 0.99).toFixed(2),
  }
}
