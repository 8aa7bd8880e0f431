/** A cluster of three replicas with two nodes, which are kubelets and containerd on this machine and no guests: every
 *  part of its control plane is killed, it is upgraded with its pool, and goes back to a snapshot, while clients write
 *  and watch. Add-ons run, and their platform is away: `test/addons` has what they do with it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findAddons } from '../../hosting/processes/addon-table.ts'
import { findKubernetes } from '../../hosting/processes/programs.ts'
import type { ControlPlaneState } from '../../integrations/control-planes/control.ts'
import { BUILD_KUBERNETES_COMMAND } from '../../domain/kubernetes-cluster/versions.ts'
import { openCaches } from '../../kit/kube/caches.ts'
import { isNewer } from '../../kit/kube/cache.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import type { ResourceType } from '../../kit/kube/object.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { signalProcess } from '../../kit/sys/process.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { TIERS } from '../../tools/tiers.ts'
import { useDatabase } from '../database.ts'
import { whileWriting } from '../hosting/processes/config-map-writer.ts'
import { adminOf, isWhole, type KubeClient, untilState } from '../hosting/processes/hosted.ts'
import { until } from '../eventually.ts'
import { type PlayedPool, startPool } from '../pods/pool.ts'
import { deployment } from '../pods/workloads.ts'

const WAIT_MILLISECONDS = 120_000
/** Nothing is stored until members have found another leader. */
const ELECTION_MILLISECONDS = 60_000
const SEEN_MILLISECONDS = 1_500
const LOOK_MILLISECONDS = 200
const [FROM, TO] = ['1.35', '1.36']
/** Nothing listens there. */
const AWAY = 'http://127.0.0.1:9'
const Deployment: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  scope: 'Namespaced',
}
const members = (name: string) => [0, 1, 2].map((member) => `${name}-${member}`)

const addons = await findAddons()
const PARTS = [
  ...members('etcd'),
  ...members('kube-apiserver'),
  'kube-controller-manager',
  'kube-scheduler',
  'konnectivity-server',
  ...addons.flatMap(({ programs }) => programs.map(({ name }) => name)),
]
/** The minor before takes minutes to build: here it is not built. */
const hasTwoReleases = ((await findKubernetes())?.releases ?? []).length > 1
const missing = hasTwoReleases
  ? await TIERS.find(({ name }) => name === 'pods')?.missing()
  : `two releases are not built: ${BUILD_KUBERNETES_COMMAND} -- --minor 1.35 --minor 1.36`
const title = `a cluster of kubelets on this machine${missing === undefined ? '' : ` (${missing})`}`

describe.skipIf(missing !== undefined)(title, () => {
  const database = useDatabase()
  let folder: string
  let pool: PlayedPool

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svccloud-ha-'))
    pool = await startPool(database.db, {
      folder,
      version: FROM,
      pool: { count: 2 },
      host: { memoryBytes: 6 * 1024 ** 3, addons: { apiUrl: AWAY, known: addons } },
    })
    await pool.apply(deployment({ name: 'app', replicas: 2, cpu: '50m' }), BUDGET)
    await running('app', 2)
  }, 900_000)

  afterAll(async () => {
    await pool?.end()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  const admin = () => adminOf(pool.hosted, pool.controlPlaneId)
  /** As it was seen well after now: what was seen before may be what it was then. */
  const wholeAgain = () => {
    const seen = Date.now() + SEEN_MILLISECONDS
    const isSo = (state: ControlPlaneState) => isWhole(state) && Date.parse(state.observedAt) > seen
    return untilState(pool.hosted, pool.controlPlaneId, isSo)
  }

  /** Ids of containers of its pods that are ready. */
  async function containersOf(app: string): Promise<readonly string[]> {
    const path = '{range .items[*].status.containerStatuses[?(@.ready==true)]}{.containerID}{"\\n"}{end}'
    const text = await pool.kubectl('get', 'pods', '-l', `app=${app}`, '-o', `jsonpath=${path}`)
    return text.split('\n').filter((id) => id !== '')
  }
  const running = (app: string, count: number) =>
    until(
      `${count} pods of ${app}`,
      () => containersOf(app),
      ({ length }) => length === count,
      WAIT_MILLISECONDS,
    )

  test('every part of its control plane is killed, one after the other, and no write fails', async () => {
    const { host } = pool.hosted
    const pidOf = (part: string) => host.pid(pool.controlPlaneId, part)
    expect(PARTS).toContain('cloud-controller')
    for (const part of PARTS)
      await until(
        `${part} to run`,
        () => pidOf(part),
        (pid) => pid !== undefined,
      )
    const kill = async () => {
      for (const part of PARTS) {
        const before = pidOf(part)
        signalProcess(before ?? 0, 'SIGKILL')
        await until(
          `${part} again`,
          () => pidOf(part),
          (pid) => pid !== undefined && pid !== before,
        )
        await wholeAgain()
      }
    }
    const written = await whileWriting(await admin(), kill, { patienceMilliseconds: ELECTION_MILLISECONDS })
    expect(written).toMatchObject({ failed: [], lost: [] })
    expect(written.count).toBeGreaterThan(50)
    // What came back works: something is scheduled, made and reached by the tunnel.
    await pool.kubectl('scale', 'deployment/app', '--replicas=3')
    await running('app', 3)
    await until(
      'the tunnel',
      () => pool.kubectl('logs', 'deployment/app', '--all-pods=true'),
      () => true,
    )
    await pool.kubectl('scale', 'deployment/app', '--replicas=2')
  })

  test('it is upgraded with its pool, and no write fails', async () => {
    const before = await pool.settled(2, FROM)
    let mostAway = 0
    const written = await whileWriting(await admin(), async () => {
      await pool.upgradeControlPlane(TO)
      mostAway = await mostAwayDuring(await admin(), async () => {
        await pool.change({ version: TO })
        expect(await pool.settled(2, TO)).toEqual(before)
      })
    })
    // Of its two nodes, with the max_unavailable that pools have by themselves.
    expect(mostAway).toBe(1)
    expect(written).toMatchObject({ failed: [], lost: [] })
    expect(written.count).toBeGreaterThan(50)
    await running('app', 2)
  })

  test('a restore is seen by everybody who watched before: a client, controllers, kubelets', async () => {
    const { host } = pool.hosted
    const { controlPlaneId: id } = pool
    await pool.apply(deployment({ name: 'kept', replicas: 2, cpu: '20m' }))
    const containers = await running('kept', 2)
    const snapshotId = newUuid(systemRandom)
    await host.snapshot(id, snapshotId)
    await until(
      'the snapshot',
      () => host.snapshots(id),
      (all) => all.some((each) => each.id === snapshotId && each.phase === 'done'),
    )
    await pool.kubectl('delete', 'deployment/kept')
    await running('kept', 0)
    await pool.apply(deployment({ name: 'late', replicas: 1, cpu: '20m' }))
    await running('late', 1)
    const { cache, close } = await openWatch(join(folder, 'kubeconfig'))
    try {
      const named = (name: string) => cache.get({ namespace: 'default', name })
      expect([named('kept'), named('late') === undefined]).toEqual([undefined, false])
      const revision = named('late')?.metadata.resourceVersion ?? ''
      const restoreId = newUuid(systemRandom)
      await host.restore(id, restoreId, snapshotId)
      await untilState(pool.hosted, id, (state) => isWhole(state) && state.restoreId === restoreId)
      await until(
        'the watch to see it',
        () => [named('kept')?.metadata.resourceVersion, named('late')] as const,
        ([kept, late]) => kept !== undefined && late === undefined,
        WAIT_MILLISECONDS,
      )
      await pool.kubectl('annotate', 'deployment/kept', 'seen=again')
      const { metadata } = await until(
        'a change after it',
        () => named('kept') ?? { metadata: { annotations: {} as Record<string, string>, resourceVersion: '' } },
        (kept) => kept.metadata.annotations?.['seen'] === 'again',
      )
      expect(isNewer(metadata.resourceVersion ?? '', revision)).toBe(true)
    } finally {
      await close()
    }
    // Their containers had gone with the pods: the kubelets have begun others.
    const again = await until(
      'the pods of before',
      () => containersOf('kept'),
      (now) => now.length === 2 && now.every((each) => !containers.includes(each)),
      WAIT_MILLISECONDS,
    )
    expect(again).toHaveLength(2)
    expect(await containersOf('late')).toEqual([])
    await pool.settled(2, TO)
  })
})

const BUDGET = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'app' },
  spec: { minAvailable: 1, selector: { matchLabels: { app: 'app' } } },
}

interface ReadNode {
  readonly spec: { readonly unschedulable?: boolean }
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] }
}
/** It takes pods. */
const isThere = ({ spec, status: { conditions } }: ReadNode): boolean =>
  spec.unschedulable !== true && conditions.some(({ type, status }) => type === 'Ready' && status === 'True')

/** How many of the two nodes took no pods at a time, at most, as looked at while the work was done. */
async function mostAwayDuring(client: KubeClient, work: () => Promise<unknown>): Promise<number> {
  let most = 0
  let isDone = false
  const look = async () => {
    const { status, body } = await client.send('GET', '/api/v1/nodes')
    if (status !== 200) return
    const { items } = body as { readonly items: readonly ReadNode[] } // a list of them
    most = Math.max(most, 2 - items.filter(isThere).length)
  }
  const looking = (async () => {
    while (!isDone) {
      await look().catch(() => {}) // API servers come and go meanwhile
      await systemClock.sleep(LOOK_MILLISECONDS)
    }
  })()
  try {
    await work()
  } finally {
    isDone = true
    await looking
  }
  return most
}

/** A client that keeps what it watches, as informers do. */
async function openWatch(kubeconfig: string) {
  const { transport, close } = openHttpsTransport(await readKubeconfig(kubeconfig, systemClock))
  const parts = { clock: systemClock, random: systemRandom }
  const store = openClient({ transport, fieldManager: 'test', ...parts })
  const registry = openRegistry({ isProcessWide: false })
  const caches = openCaches({ store, log: silentLog, registry, ...parts })
  const cache = caches.of(Deployment)
  const stopping = new AbortController()
  caches.start(stopping.signal)
  await caches.ready()
  return {
    cache,
    async close() {
      stopping.abort()
      await close()
    },
  }
}
