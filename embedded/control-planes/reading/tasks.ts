/** What is done with the API servers and the etcd of one control plane by the process that reads their answers, which
 *  runs as its user: what an answer does to whoever reads it stays there. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { CALLS } from '../../../kit/control-planes/calls.ts'
import type { ControlPlaneDesired, ControlPlaneGuest, ControlPlanes } from '../../../kit/control-planes/control.ts'
import { type AddonNeeds, applyAddon } from '../../../kit/control-planes/hosting/addon-parts.ts'
import { applyAddons } from '../../../kit/control-planes/hosting/addons.ts'
import { applyClusterObjects } from '../../../kit/control-planes/hosting/cluster-objects.ts'
import { LOOPBACK } from '../../../kit/control-planes/hosting/credentials.ts'
import { type Client, openClient } from '../../../kit/control-planes/hosting/https-client.ts'
import type { KubeApi } from '../../../kit/control-planes/hosting/kube-api.ts'
import { readLoad } from '../../../kit/control-planes/hosting/load.ts'
import { clusterCalls } from '../../../kit/control-planes/hosting/planes.ts'
import { takeSnapshot } from '../../../kit/control-planes/hosting/snapshots.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Random } from '../../../kit/sys/random.ts'
import { applyIngressStatus } from '../guests/ingress-status.ts'
import { applyLimits } from '../guests/limits.ts'
import { AppRoute, AppTarget, readRoutes, targetOf } from '../guests/routes.ts'
import { applyVolumes } from '../guests/volumes.ts'
import { isApiReady, isMemberHealthy } from '../health.ts'
import { RUN_FOLDER } from '../users.ts'

const [SECOND, MINUTE] = [1_000, 60_000]

/** What the platform asks of the API of a cluster, by the names that it has for it. */
export const CLUSTER_CALLS = [
  ...(['nodes', 'userToken', 'joinToken', 'removeJoinToken', 'servingRequests', 'approveServing'] as const),
  ...(['personToken', 'removePerson'] as const),
  ...(['markNode', 'drain', 'uncordon', 'removeNode', 'setAgent', 'load'] as const),
]
export type ClusterCall = (typeof CLUSTER_CALLS)[number]

type ClusterTaskTable = {
  readonly [Name in ClusterCall]: { readonly answers: (typeof CALLS)[Name]['answers']; readonly milliseconds: number }
}
const rows = CLUSTER_CALLS.map((name) => [name, { answers: CALLS[name].answers, milliseconds: MINUTE }])
const clusterTasks = Object.fromEntries(rows) as ClusterTaskTable // there is a row for each name

/** What each answers, which whoever asked judges by this, and after how long it has failed. */
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

/** A call of the platform, with the port of the API in the place of the control plane's id. */
type ByPort<Call> = Call extends (id: string, ...words: infer Words) => infer Answered
  ? (port: number, ...words: Words) => Answered
  : never
type ClusterTasks = { readonly [Name in ClusterCall]: ByPort<ControlPlanes[Name]> }

/** Ports are those of this machine: of API servers and members of etcd that run. */
export interface Reading extends ClusterTasks {
  /** Whether each is well; a port that is null is not asked. */
  look(ports: {
    readonly apis: readonly (number | null)[]
    readonly members: readonly (number | null)[]
  }): Promise<z.infer<(typeof TASKS)['look']['answers']>>
  /** The objects of the platform, and what its nodes need where it has any. */
  prepare(port: number, desired: ControlPlaneDesired, hasNodes: boolean): Promise<void>
  applyAddon(port: number, needs: AddonNeeds): Promise<void>
  /** Into `SNAPSHOT_FILE`, judged by that program. */
  snapshot(port: number, etcdutl: string): Promise<void>
  /** What is in a playground once its node is ready. */
  settleGuest(port: number, guest: ControlPlaneGuest, served: { hostname: string; port: number }): Promise<void>
  routes(port: number): Promise<readonly AppRoute[]>
  target(port: number, route: AppRoute): Promise<AppTarget | undefined>
}

/** What is asked of the API of a cluster that serves. */
export interface ClusterReading {
  ask<Name extends ClusterCall | 'settleGuest' | 'routes' | 'target'>(
    task: Name,
    ...words: Parameters<Reading[Name]> extends [unknown, ...infer Rest] ? Rest : never
  ): Promise<Awaited<ReturnType<Reading[Name]>>>
}

const SNAPSHOT = 'snapshot'
/** Below the folder of the control plane. */
export const SNAPSHOT_FILE = join(RUN_FOLDER, `${SNAPSHOT}.db`)
const PROBE_MILLISECONDS = 3_000

export interface ReadingParts {
  /** Of the control plane, with its credentials. */
  readonly folder: string
  readonly clock: Clock
  readonly random: Random
}

/** With the credentials that are in the folder now. */
export async function openReading({ folder, clock, random }: ReadingParts): Promise<Reading> {
  const pem = (name: string) => readFile(join(folder, name), 'utf8')
  const clientOf = async (name: string, authority: string): Promise<Client> =>
    openClient(
      await pem(`${authority}.crt`),
      { certificate: await pem(`${name}.crt`), key: await pem(`${name}.key`) },
      { clock },
    )
  const admin = await clientOf('admin', 'ca')
  const etcd = await clientOf('etcd-client', 'etcd-ca')
  const autoscaler = await clientOf('autoscaler', 'ca')
  const urlOf = (port: number): string => `https://${LOOPBACK}:${port}`
  const at = (port: number, client = admin): KubeApi => ({ url: urlOf(port), client })
  const isWell = (client: Client, path: string, isRight: typeof isApiReady) => async (port: number | null) =>
    port !== null &&
    client.send(`${urlOf(port)}${path}`, { timeoutMilliseconds: PROBE_MILLISECONDS }).then(isRight, () => false)
  // What a call takes after the id it takes after the port.
  const calls = clusterCalls((port) => at(Number(port)), { clock, random }) as unknown as Omit<ClusterTasks, 'load'>
  return {
    ...calls,
    load: async (port: number) => readLoad(at(port, autoscaler)),
    look: async ({ apis, members }) => ({
      apis: await Promise.all(apis.map(isWell(admin, '/readyz', isApiReady))),
      members: await Promise.all(members.map(isWell(etcd, '/health', isMemberHealthy))),
    }),
    async prepare(port, desired, hasNodes) {
      await applyClusterObjects(at(port))
      if (hasNodes) await applyAddons(at(port), desired)
    },
    applyAddon: async (port, needs) => applyAddon(at(port), needs, clock),
    async snapshot(port, etcdutl) {
      const into = { folder: join(folder, RUN_FOLDER), id: SNAPSHOT }
      await takeSnapshot({ ...into, etcdutl, etcdUrl: urlOf(port), client: etcd })
    },
    async settleGuest(port, guest, served) {
      await applyLimits(at(port), guest)
      await applyVolumes(at(port), guest)
      await applyIngressStatus(at(port), served)
    },
    routes: async (port) => readRoutes(at(port)),
    target: async (port, route) => targetOf(at(port), route),
  }
}
