/** Servers brought from their object to `started` by the controllers and an agent with simulated guests, against raw
 *  status patches. */
import { openAgent } from '../agents/node/loop.ts'
import { ledgerInMemory } from '../agents/node/ledger.ts'
import { newSimulatedHost } from '../agents/node/drivers/hypervisor/simulated.ts'
import { simulatedVolumes } from '../agents/node/drivers/storage/simulated.ts'
import { simulatedTemplates } from '../agents/node/images/simulated.ts'
import { openControllers, runControllers } from '../controllers/index.ts'
import { openCaches } from '../kit/kube/caches.ts'
import { openControllerMetrics } from '../kit/reconcile/metrics.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { openRegistry } from '../kit/sys/metrics.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Server, type ServerSpec } from '../resources/server/index.ts'
import { KEY, openCloud, PLAN, TEMPLATE, ZONE } from './cloud.ts'
import { type Bench, closedLoop } from './runner.ts'

const BATCH = 40
const POLL_MILLISECONDS = 5
const NODE = 'n1'

export const bench: Bench = {
  name: 'B03 reconcile',
  question: `batches of ${BATCH} servers from creation to started, guests simulated`,
  subjectName: 'servers started',
  peerName: 'raw status patches',
  unit: '',
  goal: 0.05,
  async open() {
    const cloud = await openCloud([NODE])
    await cloud.startCaches()
    const stop = new AbortController()
    const controllersStore = cloud.storeOf('svccloud-controllers')
    const registry = openRegistry({ isProcessWide: false })
    const caches = openCaches({ store: controllersStore, clock, random, log, registry })
    const parts = { store: controllersStore, caches, db: cloud.db, clock, random, log }
    const controllers = openControllers({ ...parts, metrics: openControllerMetrics(registry) })
    caches.start(stop.signal)
    const running = runControllers(controllers, parts, stop.signal)
    const host = newSimulatedHost({ clock, random })
    const agent = openAgent({
      nodeName: NODE,
      store: cloud.storeOf('svccloud-agent'),
      hypervisor: host.attach(),
      volumes: simulatedVolumes(new Map()),
      images: simulatedTemplates(),
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
    }).run(stop.signal)
    const servers = caches.of(Server)
    const spec = (number: number): ServerSpec => ({
      hostname: `server-${number}`,
      title: '',
      zone: ZONE,
      plan: PLAN,
      template: TEMPLATE,
      labels: {},
      desiredPower: 'running',
      sshKeys: [KEY],
      haPolicy: 'restart',
      migrationPolicy: 'default',
      publicIpv4: false,
      metadataEnabled: true,
      isProtected: false,
    })
    let made = 0
    let patched: string | undefined

    async function batch(): Promise<void> {
      const names = await Promise.all(
        Array.from({ length: BATCH }, async () => {
          const server = await cloud.store.create(Server, {
            metadata: { name: newUuid(random), namespace: cloud.namespace },
            spec: spec(made++),
          })
          return server.metadata.name
        }),
      )
      const isStarted = (name: string) => servers.get({ namespace: cloud.namespace, name })?.status?.state === 'started'
      while (!names.every(isStarted)) {
        const broken = names.find(
          (name) => servers.get({ namespace: cloud.namespace, name })?.status?.state === 'error',
        )
        if (broken !== undefined)
          throw new Error(
            `server ${broken} failed: ` +
              `${servers.get({ namespace: cloud.namespace, name: broken })?.status?.stateDetail}`,
          )
        await clock.sleep(POLL_MILLISECONDS)
      }
      patched = names[0]
    }
    const patch = async () => {
      if (patched === undefined) throw new Error('nothing to patch yet')
      await cloud.store.patch(
        Server,
        { namespace: cloud.namespace, name: patched },
        { status: { stateDetail: newUuid(random) } },
        'status',
      )
    }
    return {
      subject: {
        async run(seconds) {
          const { units, seconds: taken } = await closedLoop(1, seconds, batch)
          return { units: units * BATCH, seconds: taken }
        },
      },
      // The controllers look at each patch too, as they do at every change: they are what is compared with, not an idle
      // machine.
      peer: { run: (seconds) => closedLoop(8, seconds, patch) },
      async close() {
        stop.abort()
        await Promise.all([running, agent])
        await cloud.close()
      },
    }
  },
}
