/** Tasks with the API servers and the etcd of one control plane. The process that reads their responses runs them, with
 *  only the rights of that control plane. So a malicious response can damage nothing else. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { defined } from '../../../domain/defined.ts'
import { CALLS } from '../../../integrations/control-planes/calls.ts'
import type {
  ControlPlaneDesired,
  ControlPlaneGuest,
  ControlPlanes,
} from '../../../integrations/control-planes/control.ts'
import { type AddonNeeds, applyAddon } from '../addon-parts.ts'
import { applyAddons } from '../addons.ts'
import { clusterCalls } from '../cluster-calls.ts'
import { applyClusterObjects } from '../cluster-objects.ts'
import { type Client, openClient } from '../https-client.ts'
import type { KubeApi } from '../kube-api.ts'
import { readLoad } from '../load.ts'
import { snapshotParts, takeSnapshot } from '../snapshots.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Random } from '../../../kit/sys/random.ts'
import { applyIngressStatus } from './guests/ingress-status.ts'
import { applyLimits } from './guests/limits.ts'
import { AppRoute, AppTarget, readRoutes, targetOf } from './guests/routes.ts'
import { applyVolumes } from './guests/volumes.ts'
import { isApiReady, isMemberHealthy } from './health.ts'

const [SECOND, MINUTE] = [1_000, 60_000]

/** Calls of the platform to the API of a cluster, by their names in the platform's interface. */
const CLUSTER_CALLS = [
  ...(['nodes', 'userToken', 'joinToken', 'removeJoinToken', 'servingRequests', 'approveServing'] as const),
  ...(['personToken', 'removePerson'] as const),
  ...(['markNode', 'drain', 'uncordon', 'removeNode', 'setAgent', 'load'] as const),
]
type ClusterCall = (typeof CLUSTER_CALLS)[number]

type ClusterTaskTable = {
  readonly [Name in ClusterCall]: { readonly answers: (typeof CALLS)[Name]['answers']; readonly milliseconds: number }
}
const rows = CLUSTER_CALLS.map((name) => [name, { answers: CALLS[name].answers, milliseconds: MINUTE }])
const clusterTasks = Object.fromEntries(rows) as ClusterTaskTable // one row for each name

/** The schema of each task's result, with which the caller validates it, and the task's time limit. */
export const TASKS = {
  ...clusterTasks,
  look: {
    answers: z.object({ apis: z.array(z.boolean()).max(16), members: z.array(z.boolean()).max(16) }),
    milliseconds: 20 * SECOND,
  },
  prepare: { answers: z.undefined(), milliseconds: 2 * MINUTE },
  applyAddon: { answers: z.undefined(), milliseconds: 2 * MINUTE },
  snapshot: { answers: z.undefined(), milliseconds: 10 * MINUTE },
  settleGuest: { answers: z.undefined(), milliseconds: MINUTE },
  routes: { answers: z.array(AppRoute), milliseconds: MINUTE },
  target: { answers: AppTarget.optional(), milliseconds: MINUTE },
} as const satisfies Readonly<Record<string, { readonly answers: z.ZodType; readonly milliseconds: number }>>

export type TaskName = keyof typeof TASKS

/** Like the calls of the platform, but with the address of the API instead of the control plane's id. */
type ClusterTasks = Pick<ControlPlanes, ClusterCall>

/** Addresses have the form `https://HOST:PORT`, of running API servers and members of etcd. */
export interface Reading extends ClusterTasks {
  /** Whether each is healthy; null entries are skipped. */
  look(addresses: {
    readonly apis: readonly (string | null)[]
    readonly members: readonly (string | null)[]
  }): Promise<z.infer<(typeof TASKS)['look']['answers']>>
  /** Applies the objects of the platform, and those for nodes if it has any. */
  prepare(api: string, desired: ControlPlaneDesired, hasNodes: boolean): Promise<void>
  applyAddon(api: string, needs: AddonNeeds): Promise<void>
  /** Takes a snapshot to the file `SNAPSHOT` in the snapshot folder, and verifies it with that program. */
  snapshot(etcd: string, etcdutl: string): Promise<void>
  /** Applies the objects of a playground once its node is ready. */
  settleGuest(api: string, guest: ControlPlaneGuest, served: { hostname: string; port: number }): Promise<void>
  routes(api: string): Promise<readonly AppRoute[]>
  target(api: string, route: AppRoute): Promise<AppTarget | undefined>
}

/** Questions to the API of a cluster that serves. */
export interface ClusterReading {
  ask<Name extends ClusterCall | 'settleGuest' | 'routes' | 'target'>(
    task: Name,
    ...words: Parameters<Reading[Name]> extends [unknown, ...infer Rest] ? Rest : never
  ): Promise<Awaited<ReturnType<Reading[Name]>>>
}

/** Implements a host's calls for clusters with the reader of each control plane. */
export function readingCalls(clusterOf: (id: string) => ClusterReading): Pick<ControlPlanes, ClusterCall> {
  const callOf =
    (name: ClusterCall) =>
    async (id: string, ...words: readonly never[]) => {
      // Takes the arguments of the call of that name after the id.
      const ask = clusterOf(id).ask as (task: ClusterCall, ...args: readonly never[]) => Promise<unknown>
      return ask(name, ...words)
    }
  // The tasks of these names take the same arguments as the calls, without the id.
  return Object.fromEntries(CLUSTER_CALLS.map((name) => [name, callOf(name)])) as Pick<ControlPlanes, ClusterCall>
}

const SNAPSHOT_ID = 'snapshot'
export const SNAPSHOT = `${SNAPSHOT_ID}.db`
const PROBE_MILLISECONDS = 3_000

export interface ReadingParts {
  /** Folder with the credentials of the control plane. */
  readonly folder: string
  /** Folder for snapshots; undefined when they are streamed. */
  readonly snapshotFolder?: string
  /** Names in the certificates, if they are not the hosts of addresses. */
  readonly serverNames?: { readonly api: string; readonly etcd: string }
  readonly clock: Clock
  readonly random: Random
}

export interface OpenedReading extends Reading {
  /** Streams a snapshot. */
  snapshotParts(etcd: string): AsyncIterable<Uint8Array>
}

/** Opens with the credentials that are in the folder now. */
export async function openReading({
  folder,
  snapshotFolder,
  serverNames,
  clock,
  random,
}: ReadingParts): Promise<OpenedReading> {
  const pem = (name: string) => readFile(join(folder, name), 'utf8')
  const clientOf = async (name: string, authority: string, serverName: string | undefined): Promise<Client> => {
    const own = { certificate: await pem(`${name}.crt`), key: await pem(`${name}.key`) }
    return openClient(await pem(`${authority}.crt`), own, { clock, ...defined({ serverName }) })
  }
  const admin = await clientOf('admin', 'ca', serverNames?.api)
  const etcd = await clientOf('etcd-client', 'etcd-ca', serverNames?.etcd)
  const autoscaler = await clientOf('autoscaler', 'ca', serverNames?.api)
  const at = (url: string, client = admin): KubeApi => ({ url, client })
  const isWell = (client: Client, path: string, isRight: typeof isApiReady) => async (url: string | null) =>
    url !== null && client.send(`${url}${path}`, { timeoutMilliseconds: PROBE_MILLISECONDS }).then(isRight, () => false)
  return {
    ...clusterCalls(at, { clock, random }),
    load: async (api) => readLoad(at(api, autoscaler)),
    look: async ({ apis, members }) => ({
      apis: await Promise.all(apis.map(isWell(admin, '/readyz', isApiReady))),
      members: await Promise.all(members.map(isWell(etcd, '/health', isMemberHealthy))),
    }),
    async prepare(api, desired, hasNodes) {
      await applyClusterObjects(at(api))
      if (hasNodes) await applyAddons(at(api), desired)
    },
    applyAddon: async (api, needs) => applyAddon(at(api), needs, clock),
    async snapshot(etcdUrl, etcdutl) {
      if (snapshotFolder === undefined) throw new Error('snapshots are not written here')
      await takeSnapshot({ folder: snapshotFolder, id: SNAPSHOT_ID, etcdutl, parts: snapshotParts(etcd, etcdUrl) })
    },
    async settleGuest(api, guest, served) {
      await applyLimits(at(api), guest)
      await applyVolumes(at(api), guest)
      await applyIngressStatus(at(api), served)
    },
    snapshotParts: (etcdUrl) => snapshotParts(etcd, etcdUrl),
    routes: async (api) => readRoutes(at(api)),
    target: async (api, route) => targetOf(at(api), route),
  }
}
