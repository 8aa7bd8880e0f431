/** Functions that are the same for every host of control planes, regardless of how their programs run. */
import { z } from 'zod'
import { Damaged } from '../../kit/chunks/seal.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'
import {
  ControlPlaneDesired,
  type ControlPlanes,
  type ControlPlaneState,
  type SnapshotPlace,
} from '../../integrations/control-planes/control.ts'
import { putJoinToken, removeJoinToken, removePerson, requestPersonToken, requestUserToken } from './cluster-objects.ts'
import type { KubeApi } from './kube-api.ts'
import {
  approveServing,
  drainNode,
  listNodes,
  listServingRequests,
  markNode,
  removeNode,
  uncordonNode,
} from './nodes.ts'
import { setAgent } from './platform-agent.ts'
import { Refused } from './refused.ts'
import { recoverFolder, type SnapshotKeeper } from './snapshot-keeper.ts'

/** The record of a control plane that every host stores. */
export const PlaneRecord = z.object({
  desired: ControlPlaneDesired,
  /** The release that all API servers have reached; null before the first start. */
  release: z.string().nullable(),
  /** Number of restores; each generation has its own data. */
  generation: z.int().min(0),
  /** The restore in progress; `isWritten` once the next generation is complete and in use. */
  restore: z.object({ id: z.uuid(), snapshotId: z.uuid(), isWritten: z.boolean() }).nullable(),
  /** The last restore that ended. */
  restoreId: z.uuid().nullable(),
  isRemoved: z.boolean(),
})
export type PlaneRecord = z.infer<typeof PlaneRecord>

/** A control plane whose etcd can be snapshotted and restored. */
export interface SnapshotPlane {
  readonly snapshots: SnapshotKeeper
  readonly record: PlaneRecord
  /** Durable when this resolves. */
  change(to: <Known extends PlaneRecord>(record: Known) => Known): Promise<void>
  state(): ControlPlaneState
}

const minorOf = (release: string): number => Number(release.split('.')[1])

/** The earliest date; undefined when there are none. */
export const earliest = (dates: readonly Date[]): Date | undefined =>
  dates.toSorted((one, other) => one.getTime() - other.getTime())[0]

/** Calls that use the API of a cluster, as its administrator. */
export function clusterCalls(
  apiOf: (id: string) => KubeApi,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Pick<
  ControlPlanes,
  | 'nodes'
  | 'userToken'
  | 'personToken'
  | 'removePerson'
  | 'joinToken'
  | 'removeJoinToken'
  | 'servingRequests'
  | 'approveServing'
  | 'markNode'
  | 'drain'
  | 'removeNode'
  | 'setAgent'
  | 'uncordon'
> {
  return {
    nodes: async (id) => listNodes(apiOf(id)),
    userToken: async (id, role, seconds) => requestUserToken(apiOf(id), role, seconds),
    personToken: async (id, person, seconds) => requestPersonToken(apiOf(id), person, seconds),
    removePerson: async (id, person) => removePerson(apiOf(id), person),
    joinToken: async (id, tokenId, pool, seconds) => {
      const expiresAt = new Date(clock.now().getTime() + seconds * 1_000)
      return putJoinToken(apiOf(id), { tokenId, pool, expiresAt, random })
    },
    removeJoinToken: async (id, tokenId, pool) => removeJoinToken(apiOf(id), tokenId, pool),
    servingRequests: async (id) => listServingRequests(apiOf(id)),
    approveServing: async (id, request) => approveServing(apiOf(id), request),
    markNode: async (id, node, marks) => markNode(apiOf(id), node, marks),
    drain: async (id, node) => drainNode(apiOf(id), node),
    removeNode: async (id, node) => removeNode(apiOf(id), node),
    setAgent: async (id, objects) => setAgent(apiOf(id), objects),
    uncordon: async (id, node) => uncordonNode(apiOf(id), node),
  }
}

/** Throws Refused when the release is not one of these. */
export function requireOffered(releases: readonly string[], desired: ControlPlaneDesired): void {
  if (!releases.includes(desired.release))
    throw new Refused('state_not_allowed', `Kubernetes ${desired.release} is not offered here.`)
}

/** Throws Refused for a change that a control plane does not support. */
function judgeChange(record: PlaneRecord, desired: ControlPlaneDesired): void {
  if (record.isRemoved) throw new Refused('state_not_allowed', 'The control plane is being removed.')
  if (record.desired.replicas !== desired.replicas)
    throw new Refused('state_not_allowed', 'The number of replicas does not change.')
  const [from, to] = [minorOf(record.desired.release), minorOf(desired.release)]
  if (to < from) throw new Refused('state_not_allowed', 'Kubernetes does not go back to an older minor version.')
  if (to > from + 1) throw new Refused('state_not_allowed', 'Kubernetes goes up one minor version at a time.')
}

/** Changes the desired state of an existing control plane. Throws Refused. */
export async function changeDesired(plane: SnapshotPlane, desired: ControlPlaneDesired): Promise<ControlPlaneState> {
  judgeChange(plane.record, desired)
  await plane.change((record) =>
    JSON.stringify(record.desired) === JSON.stringify(desired) ? record : { ...record, desired },
  )
  return plane.state()
}

export function snapshotCalls(
  known: (id: string) => SnapshotPlane,
): Pick<ControlPlanes, 'snapshot' | 'snapshots' | 'keepSnapshotsIn' | 'removeSnapshot' | 'restore'> {
  return {
    async snapshot(id, snapshotId) {
      const { snapshots, record } = known(id)
      return snapshots.take(snapshotId, record.release ?? record.desired.release)
    },
    snapshots: async (id) => known(id).snapshots.list(),
    keepSnapshotsIn: async (id, place) => known(id).snapshots.setPlace(place),
    removeSnapshot: async (id, snapshotId) => {
      const { snapshots, record } = known(id)
      if (record.restore?.snapshotId === snapshotId)
        throw new Refused('state_not_allowed', 'The snapshot is being restored.')
      await snapshots.remove(snapshotId)
    },
    restore: async (id, restoreId, snapshotId) => beginRestore(known(id), restoreId, snapshotId),
  }
}

/** Does nothing when a restore of that id has started or ended. */
export async function beginRestore(
  plane: SnapshotPlane,
  restoreId: string,
  snapshotId: string,
): Promise<ControlPlaneState> {
  const snapshot = (await plane.snapshots.list()).find((each) => each.id === snapshotId)
  if (snapshot?.phase !== 'done') throw new Refused('not_found', 'snapshot')
  const { restore } = plane.record
  if (restore !== null && restore.id !== restoreId)
    throw new Refused('state_not_allowed', 'Another restore is under way.')
  await plane.change((record) =>
    record.restore !== null || record.restoreId === restoreId
      ? record
      : { ...record, restore: { id: restoreId, snapshotId, isWritten: false } },
  )
  return plane.state()
}

/** Prepares the folder of a new control plane from the contents of the place. */
export const fromPlace =
  (
    options: { readonly clock: Clock; readonly random: Random },
    place: SnapshotPlace,
    { restoreId, snapshotId }: Record<'restoreId' | 'snapshotId', string>,
  ) =>
  async (folder: string): Promise<Pick<PlaneRecord, 'restore'>> => {
    try {
      const stored = await recoverFolder(folder, place, options)
      if (!stored.includes(snapshotId)) throw new Refused('not_found', 'snapshot')
    } catch (error) {
      if (error instanceof Damaged)
        throw new Refused(
          'state_not_allowed',
          `The object storage does not have what the cluster needs: ${error.message}`,
        )
      throw error
    }
    return { restore: { id: restoreId, snapshotId, isWritten: false } }
  }
