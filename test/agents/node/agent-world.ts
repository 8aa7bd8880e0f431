/** A node in one process under virtual time: the embedded Kubernetes API, a simulated host, and an agent that can be
 *  killed. */
import { defined } from '../../../domain/defined.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { ADMIN, openCore } from '../../../embedded/kubernetes/core/core.ts'
import { nodeUser } from '../../../embedded/kubernetes/server/credentials.ts'
import { memoryStorage } from '../../../embedded/kubernetes/storage/memory.ts'
import type { BackupWork } from '../../../agents/node/backup/work.ts'
import type { Hypervisor } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { newSimulatedHost, type SimulatedHost } from '../../../agents/node/drivers/hypervisor/simulated.ts'
import {
  newSimulatedStorage,
  type SimulatedStorage,
  simulatedVolumes,
} from '../../../agents/node/drivers/storage/simulated.ts'
import type { HeldVolume } from '../../../agents/node/drivers/storage/volume-store.ts'
import { type HeldImage, simulatedImages } from '../../../agents/node/images/image-store.ts'
import { simulatedTemplates } from '../../../agents/node/images/simulated.ts'
import { type Ledger, ledgerInMemory } from '../../../agents/node/ledger.ts'
import { type Agent, openAgent } from '../../../agents/node/loop.ts'
import { openClient } from '../../../kit/kube/client.ts'
import { installCrds } from '../../../kit/kube/crd.ts'
import { crds } from '../../../controllers/kit/crds.ts'
import { Namespace, type KubeObject } from '../../../kit/kube/object.ts'
import type { Store } from '../../../kit/kube/store.ts'
import type { Transport } from '../../../kit/kube/transport.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import {
  AGENT_FINALIZER,
  Instance,
  nodeNamespace,
  type InstanceSpec,
  type InstanceStatus,
  Volume,
} from '../../../resources/instance/index.ts'
import { Scheduler, SimulatedProcess } from '../../sim/scheduler.ts'
import { instanceSpec } from './instance-spec.ts'
import { releaseRemoved } from './release.ts'

export const NODE = 'alpha'
export const NAMESPACE = nodeNamespace(NODE)
export const INSTANCE = '6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a11'
export const POOL = 'pool'
const VIRTUAL_PATIENCE_MILLISECONDS = 600_000

export interface AgentStart {
  /** Describing the host fails while it answers false. */
  readonly canReport?: () => boolean
  /** Templates that are ready on the host; those of simulated hosts when absent. */
  readonly built?: () => Promise<readonly string[]>
  /** What stands between the agent and the server. */
  readonly disturb?: (serve: Transport) => Transport
  /** What the host does for backups. */
  readonly backups?: BackupWork
  /** Names of disks that somebody has open elsewhere. */
  readonly openElsewhere?: ReadonlySet<string>
  /** The agent dies as soon as a guest of its was destroyed, and learns nothing of it. */
  readonly diesWithGuest?: boolean
  /** What stands between guests of managed machines and the agent. */
  readonly retell?: (answer: Buffer) => Buffer
}

export interface AgentWorld {
  readonly scheduler: Scheduler
  readonly store: Store
  readonly host: SimulatedHost
  readonly disks: Map<string, HeldVolume>
  /** What other hosts see as well. */
  readonly shared: SimulatedStorage
  readonly images: Map<string, HeldImage>
  readonly ledger: Ledger
  startAgent(options?: AgentStart): Agent
  killAgent(): void
  settled<T>(promise: Promise<T>): Promise<T>
  pass(milliseconds: number): Promise<void>
  /** The Instance once it is as wanted. */
  instanceWhen(
    isWanted: (instance: KubeObject<InstanceSpec, InstanceStatus>) => boolean,
  ): Promise<KubeObject<InstanceSpec, InstanceStatus>>
  /** Lets time pass until the look shows something true. */
  until(look: () => Promise<boolean>): Promise<void>
  createInstance(spec?: Partial<InstanceSpec>): Promise<void>
  /** Without its disk. */
  createInstanceOnly(spec?: Partial<InstanceSpec>): Promise<void>
  change(spec: Partial<InstanceSpec>): Promise<void>
}

export async function openAgentWorld(seed = 1): Promise<AgentWorld> {
  const scheduler = new Scheduler(seed)
  const machine = new SimulatedProcess('machine', scheduler)
  machine.begin()
  const clock = machine.clock()
  const core = await openCore({ clock, random: scheduler.random, log: silentLog, storage: memoryStorage() })
  const serve: Transport = (request) => core.handle(request, ADMIN)
  const { user, groups } = nodeUser(NODE)
  const serveAgent: Transport = (request) =>
    core.handle(request, { name: user, groups: [...groups, 'system:authenticated'] })
  const clientFor = (fieldManager: string, processClock = clock, transport = serve) =>
    openClient({
      transport,
      fieldManager,
      clock: processClock,
      random: scheduler.random,
    })
  const store = clientFor('tests')
  const host = newSimulatedHost({ clock, random: scheduler.random })
  const disks = new Map<string, HeldVolume>()
  const shared = newSimulatedStorage(POOL)
  const images = new Map<string, HeldImage>()
  const ledger = ledgerInMemory()
  const agentProcess = new SimulatedProcess('agent', scheduler)

  const settled = async <T>(promise: Promise<T>): Promise<T> => {
    let isOver = false
    const end = () => void (isOver = true)
    promise.then(end, end)
    if (!(await scheduler.runUntil(scheduler.nowMilliseconds + VIRTUAL_PATIENCE_MILLISECONDS, () => isOver)))
      throw new Error('a promise was not settled')
    return promise
  }
  const until: AgentWorld['until'] = async (look) => {
    const deadline = scheduler.nowMilliseconds + VIRTUAL_PATIENCE_MILLISECONDS
    while (!(await settled(look()))) {
      await settled(releaseRemoved(store, NAMESPACE))
      if (scheduler.nowMilliseconds > deadline) throw new Error('it did not come true in virtual time')
      await scheduler.runUntil(scheduler.nowMilliseconds + 100)
    }
  }
  const key = { namespace: NAMESPACE, name: INSTANCE }
  const createInstanceOnly: AgentWorld['createInstanceOnly'] = async (spec = {}) =>
    void (await settled(
      store.create(Instance, { metadata: { ...key, finalizers: [AGENT_FINALIZER] }, spec: instanceSpec(spec) }),
    ))
  await settled(installCrds(store, crds(), clock))
  await settled(store.create(Namespace, { metadata: { name: NAMESPACE }, spec: {} }))

  return {
    scheduler,
    store,
    host,
    disks,
    shared,
    images,
    ledger,
    settled,
    until,
    pass: async (milliseconds) => void (await scheduler.runUntil(scheduler.nowMilliseconds + milliseconds)),
    startAgent({
      canReport = () => true,
      built,
      disturb = (transport: Transport) => transport,
      diesWithGuest = false,
      retell,
      backups,
      openElsewhere = new Set(),
    } = {}) {
      agentProcess.begin()
      const agentClock = agentProcess.clock()
      const attached = host.attach()
      const hypervisor: Hypervisor = diesWithGuest
        ? {
            ...attached,
            async destroy(name) {
              await attached.destroy(name)
              agentProcess.crash()
              await new Promise<never>(() => {})
            },
          }
        : retell === undefined
          ? attached
          : { ...attached, askMachine: async (name, request) => retell(await attached.askMachine(name, request)) }
      const stop = new AbortController()
      agentProcess.onCrash(() => {
        stop.abort()
        void hypervisor.close()
      })
      const agent = openAgent({
        nodeName: NODE,
        store: clientFor('svccloud-agent', agentClock, disturb(serveAgent)),
        hypervisor,
        volumes: {
          ...simulatedVolumes(disks, { storage: shared }),
          async requireClosed(name) {
            if (openElsewhere.has(name)) throw new Unavailable(`disk ${name}`, undefined)
          },
        },
        images: { ...simulatedTemplates(), ...defined({ built }) },
        customImages: simulatedImages(images),
        ledger,
        ...(backups === undefined ? {} : { openBackups: () => backups }),
        clock: agentClock,
        random: scheduler.random,
        log: silentLog,
        registry: openRegistry({ isProcessWide: false }),
        async report() {
          if (!canReport()) throw new Error('the host cannot be described')
          return {
            agentVersion: '0',
            bootId: 'boot',
            logicalCpus: 2,
            memoryMebibytes: 1024,
            storageGibibytes: 10,
            hypervisor: 'simulated',
            features: [],
          }
        },
      })
      void agent.run(stop.signal)
      return agent
    },
    killAgent: () => agentProcess.crash(),
    async instanceWhen(isWanted) {
      let found: KubeObject<InstanceSpec, InstanceStatus> | undefined
      await until(async () => {
        found = await store.get(Instance, key)
        return found !== undefined && isWanted(found)
      })
      if (found === undefined) throw new Error('unreachable')
      return found
    },
    async createInstance(spec = {}) {
      await settled(
        store.create(Volume, {
          metadata: { namespace: NAMESPACE, name: 'boot', finalizers: [AGENT_FINALIZER] },
          spec: {
            storage: { namespace: 'acct-1', name: 's', uid: 's' },
            sizeGibibytes: 1,
            source: { kind: 'template', name: 'tiny-linux' },
          },
        }),
      )
      await createInstanceOnly(spec)
    },
    createInstanceOnly,
    change: async (spec) => void (await settled(store.patch(Instance, key, { spec }))),
  }
}
