/** What tests of moves share: the embedded Kubernetes API and two agents' processes with real QEMU. The test plays the
 *  controllers. */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GUEST_FILES } from '../../../agents/node/drivers/hypervisor/qemu-arguments.ts'
import { defined } from '../../../domain/defined.ts'
import { startKubernetesApi } from '../../../embedded/kubernetes/server/serve.ts'
import { openClient } from '../../../kit/kube/client.ts'
import { installCrds } from '../../../kit/kube/crd.ts'
import { crds } from '../../../controllers/kit/crds.ts'
import { openHttpsTransport } from '../../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../../kit/kube/kubeconfig.ts'
import { Namespace, Secret } from '../../../kit/kube/object.ts'
import type { Draft } from '../../../kit/kube/store.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { environment, nodeBinary, signalProcess } from '../../../kit/sys/process.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import {
  AGENT_FINALIZER,
  Instance,
  type InstanceStatus,
  NODE_REPORT_NAME,
  NodeReport,
  nodeNamespace,
  Volume,
  type VolumeSpec,
  type VolumeStatus,
} from '../../../resources/instance/index.ts'
import { until } from '../../eventually.ts'
import { instanceSpec } from './instance-spec.ts'
import { IMAGE_FOLDER, tinyLinux } from './real-host.ts'
import { releaseRemoved } from './release.ts'

export const NODES = ['alpha', 'beta'] as const
export type NodeName = (typeof NODES)[number]
export const other = (node: NodeName): NodeName => (node === 'alpha' ? 'beta' : 'alpha')
/** In both nodes' namespaces. */
export const KEY_SECRET = 'move-key'
const NAME = '3f0b8f1e-2a61-4f0e-9a3f-0b7c6f0d4e99'
const USER_DATA_SECRET = 'user-data'
const STORAGE = { namespace: 'acct-1', name: 's', uid: 's' }

export const instanceKey = (node: NodeName) => ({ namespace: nodeNamespace(node), name: NAME })
export const volumeKey = (node: NodeName) => ({ namespace: nodeNamespace(node), name: 'boot' })

/** Shell: prints `count` and a number. */
export const PRINT_COUNT = 'echo "count $i" > /dev/console'

const linesIn = (text: string): { readonly number: number; readonly index: number }[] =>
  [...text.matchAll(/count (\d+)\r?\n/g)].map(({ 1: digits, index }) => ({ number: Number(digits), index }))

/** Numbers of the whole lines. */
export const counts = (text: string): number[] => linesIn(text).map(({ number }) => number)

const SHOWN_CHARACTERS = 60
const LAST_WORDS_CHARACTERS = 1_000

/** What was printed around the first number that is not the next one; empty when nothing was left out or done twice. */
export function disorderIn(text: string): string {
  const wrong = linesIn(text).find(({ number }, position) => number !== position)
  return wrong === undefined
    ? ''
    : text.slice(Math.max(0, wrong.index - SHOWN_CHARACTERS), wrong.index + SHOWN_CHARACTERS)
}

function reported<Status>(status: Status | undefined): Status {
  if (status === undefined) throw new Error('nothing is reported')
  return status
}

export type TwoAgents = Awaited<ReturnType<typeof openTwoAgents>>

/** Both agents run; `settings` are more of their environment. */
export async function openTwoAgents(settings: Partial<Record<NodeName, Readonly<Record<string, string>>>> = {}) {
  await tinyLinux()
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-move-'))
  const server = await startKubernetesApi({
    folder: join(folder, 'kubernetes'),
    host: '127.0.0.1',
    port: 0,
    clock,
    random,
    log: silentLog,
  })
  const https = openHttpsTransport(await readKubeconfig(server.kubeconfig, clock))
  const store = openClient({ transport: https.transport, fieldManager: 'tests', clock, random })
  const agents = new Map<NodeName, ChildProcess>()

  async function startAgent(node: NodeName): Promise<void> {
    const child = fork(join(import.meta.dirname, '../../../agents/node/main.ts'), [], {
      execPath: nodeBinary(),
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: {
        PATH: environment()['PATH'],
        SVCCLOUD_NODE_NAME: node,
        SVCCLOUD_KUBECONFIG: server.kubeconfig,
        SVCCLOUD_DATA: join(folder, node),
        SVCCLOUD_HYPERVISOR: 'qemu',
        SVCCLOUD_IMAGE_CACHE: IMAGE_FOLDER,
        SVCCLOUD_SHARED_VOLUMES: join(folder, 'shared'),
        ...settings[node],
      },
    })
    agents.set(node, child)
    await new Promise<void>((resolve, reject) => {
      child.once('message', () => resolve())
      child.once('exit', (code) => reject(new Error(`the agent ended with ${code}`)))
    })
  }

  async function killAgent(node: NodeName): Promise<void> {
    const child = agents.get(node)
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }

  /** It does nothing until it is resumed. */
  const pauseAgent = (node: NodeName) => void agents.get(node)?.kill('SIGSTOP')
  const resumeAgent = (node: NodeName) => void agents.get(node)?.kill('SIGCONT')

  const guestFolder = (node: NodeName) => join(folder, node, 'guests', NAME)
  const guestPid = async (node: NodeName) =>
    Number(await readFile(join(guestFolder(node), 'qemu.pid'), 'utf8').catch(() => '0'))
  const createSecret = (node: NodeName, name: string, data: Readonly<Record<string, string>>) =>
    store.create(Secret, {
      metadata: { namespace: nodeNamespace(node), name },
      data: Object.fromEntries(
        Object.entries(data).map(([field, text]) => [field, Buffer.from(text).toString('base64')]),
      ),
    } as unknown as Draft<unknown, unknown>) // a Secret has data, no spec
  /** Why a QEMU ended stands nowhere else. */
  const lastWords = async (node: NodeName) =>
    (await readFile(join(guestFolder(node), GUEST_FILES.output), 'utf8').catch(() => '')).slice(-LAST_WORDS_CHARACTERS)
  const consoleOf = (node: NodeName): Promise<string> =>
    readFile(join(guestFolder(node), 'console.log'), 'utf8').catch(() => '')
  const createVolume = (node: NodeName, spec: Omit<VolumeSpec, 'storage' | 'sizeGibibytes'>) =>
    store.create(Volume, {
      metadata: { ...volumeKey(node), finalizers: [AGENT_FINALIZER] },
      spec: { storage: STORAGE, sizeGibibytes: 1, ...spec },
    })
  const statusWhen = (
    what: string,
    node: NodeName,
    isWanted: (status: InstanceStatus) => boolean,
  ): Promise<InstanceStatus> =>
    until(
      `${what} on ${node}`,
      async () => reported((await store.get(Instance, instanceKey(node)))?.status),
      isWanted,
    ).catch(async (cause: unknown) => {
      throw new Error(`${String(cause)}; QEMU said ${JSON.stringify(await Promise.all(NODES.map(lastWords)))}`, {
        cause,
      })
    })
  /** Waits for what the guest prints where it is now; tells what either host says of it when it never does. */
  const printedWhen = (what: string, node: NodeName, isWanted: (text: string) => boolean): Promise<unknown> =>
    until(
      `${what} on ${node}`,
      async () => ({
        printed: await consoleOf(node),
        states: await Promise.all(NODES.map(async (each) => (await store.get(Instance, instanceKey(each)))?.status)),
      }),
      ({ printed }) => isWanted(printed),
    )

  await installCrds(store, crds(), clock)
  for (const node of NODES) {
    await store.create(Namespace, { metadata: { name: nodeNamespace(node) }, spec: {} })
    await createSecret(node, KEY_SECRET, { psk: 'ab'.repeat(32) })
    await startAgent(node)
  }

  return {
    folder,
    store,
    startAgent,
    killAgent,
    pauseAgent,
    resumeAgent,
    guestPid,
    consoleOf,
    createVolume,
    statusWhen,
    printedWhen,

    volumeWhen: (what: string, node: NodeName, isWanted: (status: VolumeStatus) => boolean): Promise<VolumeStatus> =>
      until(`${what} on ${node}`, async () => reported((await store.get(Volume, volumeKey(node)))?.status), isWanted),

    /** Of the storage that both share. */
    async pool(): Promise<string | undefined> {
      return (await store.get(NodeReport, { namespace: nodeNamespace('alpha'), name: NODE_REPORT_NAME }))?.spec
        .pools?.[0]
    },

    /** A guest that runs the script by itself, so that nobody has to type, and counts on its console meanwhile. */
    async boot(node: NodeName, pool: string | undefined, script: string): Promise<void> {
      await createVolume(node, {
        source: { kind: 'template', name: 'tiny-linux' },
        ...defined({ pool }),
      })
      const spec = instanceSpec()
      // What a kernel without processor time complains about would stand between the digits of a number.
      await createSecret(node, USER_DATA_SECRET, { userData: `#!/bin/sh\necho 1 > /proc/sys/kernel/printk\n${script}` })
      await store.create(Instance, {
        metadata: { ...instanceKey(node), finalizers: [AGENT_FINALIZER] },
        spec: { ...spec, metadata: { ...spec.metadata, userDataSecretName: USER_DATA_SECRET } },
      })
      await statusWhen('the guest to run', node, ({ state }) => state === 'running')
      await printedWhen('the count', node, (text) => counts(text).includes(5))
    },
    /** Whether the cluster has nothing left of the guest on the node; what the agent has reported as removed is
     *  released, as by the controllers. */
    async isEmpty(node: NodeName): Promise<boolean> {
      await releaseRemoved(store, nodeNamespace(node))
      const left = [await store.get(Volume, volumeKey(node)), await store.get(Instance, instanceKey(node))]
      return left.every((object) => object === undefined)
    },
    forgetUserData: (node: NodeName) =>
      store.delete(Secret, { namespace: nodeNamespace(node), name: USER_DATA_SECRET }),

    async close(): Promise<void> {
      for (const node of NODES) {
        await killAgent(node)
        const pid = await guestPid(node)
        if (pid > 0) signalProcess(pid, 'SIGKILL')
      }
      await https.close()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
