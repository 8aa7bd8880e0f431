/** Servers from `POST /v1/servers` to `started` by API server, controllers and an agent whose guests are simulated,
 *  2,000 of them in flight, against pods brought to Running by a real Kubernetes. The embedded Kubernetes API and
 *  PostgreSQL are durable, as etcd is. The writes of API server, controllers and agent are counted, and the time of a
 *  single server. */
import { newSimulatedHost } from '../agents/node/drivers/hypervisor/simulated.ts'
import { simulatedVolumes } from '../agents/node/drivers/storage/simulated.ts'
import { simulatedImages } from '../agents/node/images/image-store.ts'
import { simulatedTemplates } from '../agents/node/images/simulated.ts'
import { ledgerInMemory } from '../agents/node/ledger.ts'
import { openAgent } from '../agents/node/loop.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { openRegistry } from '../kit/sys/metrics.ts'
import { systemRandom as random } from '../kit/sys/random.ts'
import { Node } from '../resources/node/index.ts'
import { Server } from '../resources/server/index.ts'
import { eventually } from '../test/eventually.ts'
import { type Cloud, openCloud } from './cloud.ts'
import { countingWrites, noWrites, openProcess, type Writes } from './controllers.ts'
import { createServer } from './creations.ts'
import { openPodCluster } from './pods.ts'
import { type Bench, median } from './runner.ts'

const SERVERS = { full: 2_000, short: 5 }
const ALONE = { full: 20, short: 1 }
const CREATIONS_AT_ONCE = 32
const NODE = 'n1'
const WRITES = 'Kubernetes writes a server'
const LATENCY = 'ms of one server alone, median'

export const bench: Bench = {
  name: 'B03 reconcile',
  question: `${SERVERS.full} servers in flight from request to started, guests simulated`,
  subjectName: 'servers started',
  peerName: 'pods Running: kube-apiserver, etcd, scheduler, kwok',
  unit: 'servers',
  goal: 1,
  limits: { [WRITES]: 8, [LATENCY]: 150 },
  heldBy:
    'API server, embedded Kubernetes API, controllers and agent share one process here, which spends 16 ms on a ' +
    'server: 37 % in the embedded API, 25 % in its clients, caches and the reconcile loop, 15 % on PostgreSQL, 9 % ' +
    'on garbage. Its 11 writes (test/bench/writes.database.test.ts) make Server, Operation, Storage, Volume and ' +
    'Instance, say of each that it is there, and that the operation succeeded, as an Event. A pod is 3 writes of ' +
    'programs in Go on two cores.',
  pairs: 3,
  tier: 'cluster',
  async open(round) {
    const count = SERVERS[round]
    const servers = await openServers()
    const pods = await openPodCluster()
    const alone: number[] = []
    for (let number = 0; number < ALONE[round]; number++) alone.push(await servers.run(1))
    const before = servers.writes()
    let started = 0
    return {
      subject: {
        async run() {
          const milliseconds = await servers.run(count)
          started += count
          return { units: count, seconds: milliseconds / 1_000 }
        },
      },
      peer: {
        async run() {
          const begin = clock.monotonicMilliseconds()
          await pods.run(count)
          return { units: count, seconds: (clock.monotonicMilliseconds() - begin) / 1_000 }
        },
      },
      facts: () => ({
        [WRITES]: ((servers.writes() - before) / started).toFixed(2),
        [LATENCY]: median(alone).toFixed(0),
      }),
      async close() {
        await servers.close()
        await pods.close()
      },
    }
  },
}

/** API server, controllers and agent in this process. `run` brings as many servers to `started` and returns how long
 *  that took, in milliseconds. */
export async function openServers() {
  const written = noWrites()
  const cloud = await openCloud([NODE], { counting: (store) => countingWrites(store, written) })
  await cloud.startCaches()
  const process = openProcess(cloud)
  await process.fill()
  process.begin()
  const stop = new AbortController()
  const agent = agentOf(cloud, written).run(stop.signal)
  await eventually('the node', () => process.caches.of(Node).get({ name: NODE })?.status?.state === 'ready')
  const cache = process.caches.of(Server)
  let made = 0
  return {
    writes: () => written.count + process.writes.count,
    /** By kind of write, of all processes. */
    writesBy(): Record<string, number> {
      const sum = new Map(written.by)
      for (const [what, count] of process.writes.by) sum.set(what, (sum.get(what) ?? 0) + count)
      return Object.fromEntries(sum)
    },
    async run(count: number): Promise<number> {
      const begin = clock.monotonicMilliseconds()
      const pending = new Set<string>()
      const all = Promise.withResolvers<void>()
      let isWhole = false
      const look = (name: string) => {
        const { state, stateDetail } = cache.get({ namespace: cloud.namespace, name })?.status ?? {}
        if (state === 'error') all.reject(new Error(`server ${name} failed: ${stateDetail}`))
        if (state === 'started') pending.delete(name)
        if (isWhole && pending.size === 0) all.resolve()
      }
      const unsubscribe = cache.subscribe(({ object }) => look(object.metadata.name))
      let left = count
      await Promise.all(
        Array.from({ length: Math.min(count, CREATIONS_AT_ONCE) }, async () => {
          while (left-- > 0) {
            const name = await createServer(cloud, cloud, made++)
            pending.add(name)
            look(name)
          }
        }),
      )
      isWhole = true
      for (const name of pending) look(name)
      if (pending.size === 0) all.resolve()
      await all.promise
      unsubscribe()
      return clock.monotonicMilliseconds() - begin
    },
    async close() {
      stop.abort()
      await Promise.all([process.stop(), agent])
      await cloud.close()
    },
  }
}

const agentOf = (cloud: Cloud, writes: Writes) =>
  openAgent({
    nodeName: NODE,
    store: countingWrites(cloud.storeOf('svccloud-agent'), writes),
    hypervisor: newSimulatedHost({ clock, random }).attach(),
    volumes: simulatedVolumes(new Map()),
    images: simulatedTemplates(),
    customImages: simulatedImages(),
    ledger: ledgerInMemory(),
    clock,
    random,
    log,
    registry: openRegistry({ isProcessWide: false }),
    report: async () => ({
      agentVersion: 'bench',
      bootId: 'bench',
      logicalCpus: 1_000_000,
      memoryMebibytes: 4_000_000,
      storageGibibytes: 1_000_000,
      hypervisor: 'simulated',
      features: [],
    }),
  })
