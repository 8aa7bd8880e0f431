/** Controllers that start with 10 000 servers at rest: until their caches are filled, against reading and parsing the
 *  same objects once; and, as facts, until they have reconciled every server, and what they wrote meanwhile. */
import type { ResourceType } from '../kit/kube/object.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { Instance, Volume } from '../resources/instance/index.ts'
import { Server } from '../resources/server/index.ts'
import { Storage } from '../resources/storage/index.ts'
import { type Cloud, openCloud } from './cloud.ts'
import { openProcess, type Writes } from './controllers.ts'
import { type Bench, repeat } from './runner.ts'
import { createStartedServers, NODE, OBJECTS_OF_SERVER } from './started-servers.ts'

const SERVERS = { full: 10_000, short: 20 }
const KINDS: readonly ResourceType[] = [Server, Storage, Instance, Volume]
const SECONDS = 'seconds until every server was reconciled'

export const bench: Bench = {
  name: 'B20 cold start',
  question: `controllers until they know ${SERVERS.full} servers with their disks and guests`,
  subjectName: 'caches filled',
  peerName: 'reading and parsing the lists',
  unit: 'objects',
  goal: 0.5,
  limits: { [SECONDS]: 3, writes: 0 },
  heldBy:
    'a start is 3.4 reconciles a server, and 0.9 ms of processor time of one thread: a third is planning and ' +
    'comparing drafts with what there is, a fifth reading claims from PostgreSQL, a quarter garbage. The goal leaves ' +
    '0.3 ms.',
  tier: 'database',
  async open(round) {
    const servers = SERVERS[round]
    const objects = servers * OBJECTS_OF_SERVER
    const cloud = await openCloud([NODE])
    await createStartedServers(cloud, servers)
    const whole = await start(cloud, servers)
    return {
      subject: { run: (seconds) => repeat(objects, seconds, () => fill(cloud)) },
      peer: {
        run: (seconds) =>
          repeat(objects, seconds, async () => void (await Promise.all(KINDS.map((type) => cloud.store.list(type))))),
      },
      facts: () => whole,
      close: () => cloud.close(),
    }
  },
}

/** What the writes were, if there are any. */
const written = ({ by }: Writes): Readonly<Record<string, string>> =>
  by.size === 0 ? {} : { written: [...by].map(([what, count]) => `${count} × ${what}`).join(', ') }

async function fill(cloud: Cloud): Promise<void> {
  const process = openProcess(cloud)
  await process.fill()
  await process.stop()
}

/** A complete start, until every server has been reconciled, and what was written until everything is quiet. */
async function start(cloud: Cloud, servers: number): Promise<Readonly<Record<string, string | number>>> {
  const begin = clock.monotonicMilliseconds()
  const since = () => ((clock.monotonicMilliseconds() - begin) / 1_000).toFixed(2)
  const process = openProcess(cloud)
  await process.fill()
  const filled = since()
  process.begin()
  await process.reconciled('server', servers)
  const reconciled = since()
  await process.quiet()
  await process.stop()
  return {
    'seconds until caches are filled': filled,
    [SECONDS]: reconciled,
    writes: process.writes.count,
    ...written(process.writes),
  }
}
