/** A host of control planes that only counts: states go from one to the next with each look, nothing runs. */
import type { ControlPlanesOffer } from '../kit/control-planes/configuration.ts'
import type {
  ControlPlaneDesired,
  ControlPlanes,
  ControlPlaneSnapshot,
  ControlPlaneState,
} from '../kit/control-planes/control.ts'
import { conflict, notFound, Unavailable, unavailable } from '../domain/problem.ts'

interface Plane {
  desired: ControlPlaneDesired
  release: string | null
  restoreId: string | null
  hasQuorum: boolean
  readonly snapshots: Map<string, ControlPlaneSnapshot>
}

export interface SimulatedControlPlanes {
  readonly offer: ControlPlanesOffer
  readonly planes: Map<string, Plane>
  /** While it is set nothing answers. */
  isAway: boolean
  releases: string[]
  /** What was asked of it that changes something, in order. */
  readonly calls: string[]
}

const AT = '2026-01-01T12:00:00.000Z'

export function openSimulatedControlPlanes(regions: readonly string[]): SimulatedControlPlanes {
  const planes = new Map<string, Plane>()
  const known = (id: string): Plane => {
    const plane = planes.get(id)
    if (plane === undefined) throw notFound('control plane')
    return plane
  }
  const stateOf = (id: string, plane: Plane): ControlPlaneState => {
    const { desired, release, restoreId, hasQuorum } = plane
    const [total, ready] = [desired.replicas, hasQuorum ? desired.replicas : 0]
    return {
      ...{
        id,
        release,
        restoreId,
        phase: release === null ? 'starting' : release === desired.release ? 'running' : 'upgrading',
      },
      endpoint: null,
      certificateAuthority: null,
      ...{ apiServer: hasQuorum ? 'healthy' : 'unhealthy', apiServersReady: ready, etcdMembersReady: ready },
      ...{ etcdMembersTotal: total, hasEtcdQuorum: hasQuorum, detail: 'simulated', observedAt: AT },
    }
  }
  const calls: string[] = []
  const control: ControlPlanes = {
    offer: async () => ({
      ...{ driver: 'simulated', releases: [...simulated.releases], memoryBytes: 1_000_000, reservedBytes: 0 },
      ...{ bytesOfOne: 1, bytesOfThree: 3, nodeCount: 1, etcdBytes: 1_000_000_000 },
    }),
    async ensure(desired) {
      const before = planes.get(desired.id)
      if (before === undefined)
        planes.set(desired.id, { desired, release: null, restoreId: null, hasQuorum: true, snapshots: new Map() })
      else before.desired = desired
      return stateOf(desired.id, known(desired.id))
    },
    async get(id) {
      const plane = planes.get(id)
      const state = plane && stateOf(id, plane)
      if (plane !== undefined) plane.release = plane.desired.release
      return state
    },
    remove: async (id) => !planes.delete(id),
    async snapshot(id, snapshotId) {
      const { desired, snapshots } = known(id)
      const snapshot = {
        id: snapshotId,
        phase: 'done',
        release: desired.release,
        sizeBytes: 1_000,
        createdAt: AT,
        detail: '',
      } as const
      if (!snapshots.has(snapshotId)) snapshots.set(snapshotId, snapshot)
      return snapshots.get(snapshotId) ?? snapshot
    },
    snapshots: async (id) => [...known(id).snapshots.values()],
    removeSnapshot: async (id, snapshotId) => void known(id).snapshots.delete(snapshotId),
    async restore(id, restoreId, snapshotId) {
      const plane = known(id)
      if (!plane.snapshots.has(snapshotId)) throw conflict('state_not_allowed', 'There is no such snapshot.')
      Object.assign(plane, { restoreId, hasQuorum: true })
      return stateOf(id, plane)
    },
    nodes: async () => [],
    async adminToken() {
      throw unavailable('not_configured', 'The cluster is simulated: nothing answers.')
    },
    async joinToken() {
      throw unavailable('not_configured', 'The cluster is simulated: nothing answers.')
    },
    removeJoinToken: async () => {},
    drain: async () => true,
    removeNode: async () => {},
  }
  const simulated: SimulatedControlPlanes = {
    offer: {
      regions,
      control: new Proxy(control, {
        get:
          (target, name: keyof ControlPlanes) =>
          async (...values: never[]) => {
            if (simulated.isAway) throw new Unavailable('the host of control planes')
            if (!['offer', 'get', 'snapshots', 'nodes'].includes(name)) calls.push(name)
            // Each method takes what its caller hands it.
            return (target[name] as (...given: never[]) => unknown)(...values)
          },
      }),
    },
    planes,
    isAway: false,
    releases: ['1.35.4', '1.36.3'],
    calls,
  }
  return simulated
}
