/** The two Kubernetes APIs side by side, each as separate processes over HTTPS and durable: the embedded one, and a
 *  real kube-apiserver with etcd. The same client uses both. */
import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openClient } from '../kit/kube/client.ts'
import { installCrds } from '../kit/kube/crd.ts'
import { crds } from '../controllers/kit/crds.ts'
import { openHttpsTransport } from '../kit/kube/https-transport.ts'
import { readKubeconfig } from '../kit/kube/kubeconfig.ts'
import { Namespace } from '../kit/kube/object.ts'
import type { Draft, Store } from '../kit/kube/store.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { environment } from '../kit/sys/process.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Server, type ServerSpec, type ServerStatus } from '../resources/server/index.ts'
import { startRealCluster } from '../test/cluster/real-cluster.ts'
import { serverSpec } from './cloud.ts'
import type { Bench, Round, Side } from './runner.ts'

export const NAMESPACE = 'bench'
const LISTED = 'listed'
export const LISTED_OBJECTS = { full: 2_000, short: 20 }
const SEED_BATCH = 100

/** One of the two, with everything that a benchmark needs of it. */
export interface Api {
  readonly store: Store
  /** A namespace with servers. */
  readonly listed: string
  readonly listedObjects: number
  close(): Promise<void>
}

export const draft = (namespace = NAMESPACE): Draft<ServerSpec, ServerStatus> => ({
  metadata: { name: newUuid(random), namespace },
  spec: serverSpec(0, { labels: { purpose: 'benchmark' } }),
})

async function open(kubeconfig: string, round: Round, stop: () => Promise<void>): Promise<Api> {
  const { transport, close } = openHttpsTransport(await readKubeconfig(kubeconfig, clock))
  const store = openClient({ transport, fieldManager: 'bench', clock, random })
  await installCrds(store, crds(), clock)
  for (const name of [NAMESPACE, LISTED]) await store.create(Namespace, { metadata: { name }, spec: undefined })
  const listedObjects = LISTED_OBJECTS[round]
  for (let made = 0; made < listedObjects; made += SEED_BATCH)
    await Promise.all(
      Array.from({ length: Math.min(SEED_BATCH, listedObjects) }, () => store.create(Server, draft(LISTED))),
    )
  return {
    store,
    listed: LISTED,
    listedObjects,
    async close() {
      await close()
      await stop()
    },
  }
}

export interface EmbeddedProcess {
  readonly pid: number
  readonly kubeconfig: string
  /** Stops it and waits for its end. */
  stop(): Promise<void>
}

/** Starts the embedded API on the folder; returns when it serves. */
export async function startEmbedded(folder: string): Promise<EmbeddedProcess> {
  const child = fork('embedded/kubernetes/main.ts', {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: { ...environment(), SVCCLOUD_DATA: folder, SVCCLOUD_PORT: '0', SVCCLOUD_LOG_LEVEL: 'error' },
  })
  const { kubeconfig } = await new Promise<{ readonly kubeconfig: string }>((resolve, reject) => {
    child.once('message', (message) => resolve(message as { kubeconfig: string })) // its only message
    child.once('exit', (code) => reject(new Error(`the embedded API ended with ${code}`)))
  })
  return {
    pid: child.pid ?? 0,
    kubeconfig,
    stop: async () => {
      // a process that sent a message has an id
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
    },
  }
}

export async function openEmbedded(round: Round): Promise<Api> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
  const server = await startEmbedded(folder)
  return open(server.kubeconfig, round, async () => {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  })
}

export async function openReal(round: Round): Promise<Api> {
  const cluster = await startRealCluster({ durable: true })
  return open(cluster.kubeconfigFile, round, () => cluster.stop())
}

/** A benchmark of the embedded API against the real one. */
export const compare = (
  bench: Omit<Bench, 'open' | 'subjectName' | 'peerName' | 'tier'>,
  side: (api: Api) => Promise<Side>,
): Bench => ({
  ...bench,
  subjectName: 'embedded',
  peerName: 'kube-apiserver with etcd',
  tier: 'cluster',
  async open(round) {
    const real = await openReal(round)
    const embedded = await openEmbedded(round)
    return {
      subject: await side(embedded),
      peer: await side(real),
      async close() {
        await embedded.close()
        await real.close()
      },
    }
  },
})
